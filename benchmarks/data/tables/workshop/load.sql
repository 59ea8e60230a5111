create macro eu(s) as cast(nullif(replace(replace(regexp_replace(s, '[^0-9,.-]', '', 'g'), '.', ''), ',', '.'), '') as decimal(14, 2));
create macro day(s) as cast(strptime(nullif(s, ''), '%d.%m.%Y') as date);
create view "customers" as
select "Cust. no.", "Name", "Type", "Street", "Postcode", "Town", "Phone", day("Customer since") as "Customer since", cast(eu("Discount") as decimal(5, 1)) as "Discount", "Reminder by"
from read_csv('tables/customers.csv', header = true, delim = ';', all_varchar = true);
create view "repairs_2024" as
select "Order no.", "Plate", "Make / model", "Cust. no.", day("Taken in") as "Taken in", day("Promised for") as "Promised for", day("Handed over") as "Handed over", nullif("Mechanic", '') as "Mechanic", "Job", eu("Hrs planned") as "Hrs planned", eu("Hrs worked") as "Hrs worked", cast(eu("km") as integer) as "km", "Status"
from read_csv('tables/repairs_2024.csv', header = true, delim = ';', all_varchar = true);
create view "invoices_2024" as
select "Invoice no.", "Order no.", day("Invoice date") as "Invoice date", eu("Labour net") as "Labour net", eu("Parts net") as "Parts net", eu("Net") as "Net", eu("VAT 19 %") as "VAT 19 %", eu("Gross") as "Gross", day("Due on") as "Due on", day("Paid on") as "Paid on", nullif("Paid by", '') as "Paid by", cast(nullif("Reminders", '') as integer) as "Reminders"
from read_csv('tables/invoices_2024.csv', header = true, delim = ';', all_varchar = true) where "Invoice no." like 'R-%';
create view "parts" as
select part_no, descr, grp, bin, cast(qty_oh as integer) as qty_oh, cast(qty_res as integer) as qty_res, cast(qty_min as integer) as qty_min, cast(qty_ord as integer) as qty_ord, eu(pp_net) as pp_net, eu(sp_net) as sp_net, supp, day(lst_mv) as lst_mv
from read_csv('tables/parts.csv', header = true, delim = ';', all_varchar = true);
create view "takings_2023" as
with raw as (select row_number() over () as n, * from read_csv('tables/takings_2023.csv', header = true, skip = 1, delim = ';', all_varchar = true)),
     grp as (select *, last_value(case when coalesce("Jan", '') = '' then "Work" end ignore nulls) over (order by n) as g from raw)
select g as "Group", "Work", eu("Jan") as "Jan", eu("Feb") as "Feb", eu("Mar") as "Mar", eu("Apr") as "Apr", eu("May") as "May", eu("Jun") as "Jun", eu("Jul") as "Jul", eu("Aug") as "Aug", eu("Sep") as "Sep", eu("Oct") as "Oct", eu("Nov") as "Nov", eu("Dec") as "Dec", eu("Total 2023") as "Total 2023", eu("Plan 2023") as "Plan 2023", eu("Total 2022") as "Total 2022"
from grp where coalesce("Jan", '') <> '' and "Work" not like 'Subtotal %' and "Work" <> 'Grand total' order by n;
