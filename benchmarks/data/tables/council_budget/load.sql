create macro inr(s) as (case when trim(s) like '(%' then -1 else 1 end) * cast(nullif(regexp_replace(s, '[^0-9.]', '', 'g'), '') as decimal(14, 2));
create macro rs(s) as cast(inr(s) as decimal(14, 0));
create macro dmy(s) as cast(strptime(nullif(s, ''), '%d-%m-%Y') as date);
create macro dmy2(s) as cast(strptime(nullif(s, ''), '%d/%m/%Y') as date);
create view "budget_lines_2024-25" as
select "Line", "Head", "Department", rs("Planned") as "Planned", rs("Revised") as "Revised", rs("Actual") as "Actual", rs("Planned less actual") as "Planned less actual", "St."
from read_csv('tables/budget_lines_2024-25.csv', header = true, skip = 1, delim = ',', quote = '"', all_varchar = true) where "Line" like 'B%';
create view "dept_years" as
select "Department", "Kind", rs("2019-20") as "2019-20", rs("2020-21") as "2020-21", rs("2021-22") as "2021-22", rs("2022-23") as "2022-23", rs("2023-24") as "2023-24"
from read_csv('tables/dept_years.csv', header = true, delim = ';', all_varchar = true) where "Department" <> 'All departments';
create view "grants" as
select "Grant no.", "Scheme", "Given by", "Department", dmy("Sanctioned on") as "Sanctioned on", rs("Sanctioned ₹") as "Sanctioned ₹", rs("Received ₹") as "Received ₹", rs("Spent ₹") as "Spent ₹", rs("Unspent ₹") as "Unspent ₹", dmy("UC sent on") as "UC sent on"
from read_csv('tables/grants.tsv', header = true, delim = '\t', all_varchar = true) where "Grant no." <> 'Total';
create view "contracts" as
select "Contract no.", "Work", "Contractor", "Dept.", "Ward", dmy2("Awarded") as "Awarded", dmy2("Due") as "Due", dmy2("Finished") as "Finished", inr("Estimate") as "Estimate", inr("Contract value") as "Contract value", inr("Paid so far") as "Paid so far", cast(replace("Retention", '%', '') as decimal(4, 1)) as "Retention", "Status"
from read_csv('tables/contracts.csv', header = true, delim = ',', quote = '"', all_varchar = true);
create view "staff_may_2025" as
select "Emp. no.", "Name", "Designation", "Department", "Class", dmy("Joined") as "Joined", rs("Basic pay") as "Basic pay", rs("Gross pay") as "Gross pay", rs("Deductions") as "Deductions", rs("Take-home") as "Take-home", rs(nullif("Arrears / recovery", '-')) as "Arrears / recovery", "Duty"
from read_csv('tables/staff_may_2025.csv', header = true, delim = ',', quote = '"', all_varchar = true) where "Name" <> 'TOTAL';
