create macro k(s) as (case when s like '(%' then -1 else 1 end) * cast(case when trim(s) = '-' then '0' when s in ('', 'n/a') then null else regexp_replace(s, '[^0-9.]', '', 'g') end as decimal(12, 0));
create macro k1(s) as (case when s like '(%' then -1 else 1 end) * cast(case when trim(s) = '-' then '0' when s in ('', 'n/a') then null else regexp_replace(s, '[^0-9.]', '', 'g') end as decimal(12, 1));
create view "income_statement" as
select "Company", "Line item", nullif("Note", '') as "Note", k1("2020") as "2020", k1("2021") as "2021", k1("2022") as "2022", k1("2022 restated") as "2022 restated", k1("2023") as "2023", k1("2024") as "2024", k1("Budget 2025") as "Budget 2025"
from read_csv('tables/income_statement.csv', header = true, skip = 1, delim = ',', all_varchar = true);
create view "balance_sheet" as
select "Company", "Position", k("Dec 2020") as "Dec 2020", k("Dec 2021") as "Dec 2021", k("Dec 2022") as "Dec 2022", k("Dec 2023") as "Dec 2023", k("Dec 2024") as "Dec 2024"
from read_csv('tables/balance_sheet.csv', header = true, delim = ';', all_varchar = true) where coalesce("Dec 2024", '') <> '';
create view "segments" as
select "Company", "Segment", "Run from", "Figure", k("2020") as "2020", k("2021") as "2021", k("2022") as "2022", k("2023") as "2023", k("2024") as "2024"
from read_csv('tables/segments.csv', header = true, skip = 1, delim = ',', all_varchar = true) where "Segment" <> 'Group total';
create view "headcount" as
select co_cd, ctry, ctry_nm, region, cast(hc_2020 as integer) as hc_2020, cast(hc_2021 as integer) as hc_2021, cast(hc_2022 as integer) as hc_2022, cast(hc_2023 as integer) as hc_2023, cast(hc_2024 as integer) as hc_2024, cast(fte_2024 as decimal(8, 1)) as fte_2024, cast(nullif(replace(women_pct, '%', ''), '') as decimal(5, 1)) as women_pct
from read_csv('tables/headcount.tsv', header = true, delim = '\t', all_varchar = true) where ctry_nm <> 'TOTAL';
create view "filings" as
select "Doc. no.", "Company", "Co. code", "Document", "Period", cast(strptime(nullif("Published on", ''), '%d %b %Y') as date) as "Published on", cast("Pages" as integer) as "Pages", "Language", "Assurance", "Status", "Signed by"
from read_csv('tables/filings.csv', header = true, delim = ',', all_varchar = true) where "Doc. no." like 'F-%';
