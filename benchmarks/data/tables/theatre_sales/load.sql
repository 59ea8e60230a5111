create macro gbp(s) as cast(nullif(regexp_replace(s, '[^0-9.-]', '', 'g'), '') as decimal(12, 2));
create macro gbp0(s) as case when s = '-' then cast(0 as decimal(12, 2)) else gbp(s) end;
create macro whole(s) as cast(nullif(regexp_replace(s, '[^0-9-]', '', 'g'), '') as integer);
create macro day(s) as cast(strptime(nullif(s, ''), '%d/%m/%Y') as date);
create view "performances" as
select "Perf no.", "Show", "House", day("Date") as "Date", "Curtain up", whole("Seats on sale") as "Seats on sale", whole("Seats sold") as "Seats sold", whole("Comps") as "Comps", cast(gbp("% sold") as decimal(5, 1)) as "% sold", gbp("Takings inc VAT") as "Takings inc VAT", gbp("Takings ex VAT") as "Takings ex VAT", gbp("Bar") as "Bar", nullif("Duty manager", '') as "Duty manager", "Status"
from read_csv('tables/performances.csv', header = true, delim = ',', all_varchar = true) where "Perf no." like 'P%';
create view "price_bands" as
with raw as (select row_number() over () as n, * from read_csv('tables/price_bands.csv', header = true, skip = 1, delim = ',', all_varchar = true)),
     filled as (select * replace (last_value(nullif("Show", '') ignore nulls) over (order by n) as "Show") from raw)
select "Show", "Band", gbp("Full price") as "Full price", gbp("Concession price") as "Concession price", whole("Full price seats") as "Full price seats", whole("Concession seats") as "Concession seats", gbp("Income") as "Income", gbp("Target income") as "Target income", whole("% of target") as "% of target"
from filled where "Band" not in ('Subtotal', 'Total') order by n;
create view "staff_costs" as
select "Staff no.", "Name", "Department", "Contract", gbp("Rate per hour") as "Rate per hour", gbp0("Apr") as "Apr", gbp0("May") as "May", gbp0("Jun") as "Jun", gbp0("Jul") as "Jul", gbp0("Aug") as "Aug", gbp0("Sep") as "Sep", gbp0("Oct") as "Oct", gbp0("Nov") as "Nov", gbp0("Dec") as "Dec", gbp("Paid to date") as "Paid to date", gbp("Budget") as "Budget"
from read_csv('tables/staff_costs.csv', header = true, delim = ',', all_varchar = true) where "Name" <> 'All staff';
create view "hires" as
select "Hire ref", "Hirer", "Town", "Space", "Purpose", day("Booked on") as "Booked on", day("First day") as "First day", day("Last day") as "Last day", whole("Hours booked") as "Hours booked", whole("Hours used") as "Hours used", gbp("Quoted") as "Quoted", gbp("Invoiced") as "Invoiced", gbp("Deposit") as "Deposit", day("Paid on") as "Paid on", "Status", nullif("Notes", '') as "Notes"
from read_csv('tables/hires.csv', header = true, delim = ',', all_varchar = true) where "Hire ref" like 'H-%';
create view "status_codes" as
select "Code", "Used for", "Meaning", "Counts as income?" from read_csv('tables/status_codes.csv', header = true, delim = ',', all_varchar = true);
