create macro secs(s) as cast(case when nullif(trim(s), '') is null or s = '-' then null
  when len(s) - len(replace(s, ':', '')) = 2 then 3600 * cast(split_part(s, ':', 1) as decimal(9, 2)) + 60 * cast(split_part(s, ':', 2) as decimal(9, 2)) + cast(split_part(s, ':', 3) as decimal(9, 2))
  when s like '%:%' then 60 * cast(split_part(s, ':', 1) as decimal(9, 2)) + cast(split_part(s, ':', 2) as decimal(9, 2))
  else cast(s as decimal(9, 2)) end as decimal(9, 2));
create macro n(s) as cast(nullif(replace(s, ',', ''), '') as integer);
create macro gbp(s) as cast(nullif(replace(replace(s, '£', ''), ',', ''), '') as decimal(9, 2));
create view "clubs" as
select "Code", "Club", "Town", "County", n("Founded") as "Founded", n("Members") as "Members", n("of which under 20") as "of which under 20", gbp("Yearly fee") as "Yearly fee", "Track"
from read_csv('tables/clubs.csv', header = true, delim = ',', all_varchar = true) where coalesce("Code", '') <> '';
create view "athletes" as
select "Licence", "Name", "Sex", cast("Date of birth" as date) as "Date of birth", "Club code", "Best event", secs("Personal best") as "Personal best", n("Height (cm)") as "Height (cm)", nullif("Coach", '') as "Coach", cast("Joined" as date) as "Joined", "Licence status"
from read_csv('tables/athletes.csv', header = true, delim = ',', all_varchar = true) where regexp_matches("Licence", '^L[0-9]+$');
create view "meets" as
select "Meet no.", "Name of meet", cast("Date" as date) as "Date", cast("Entries close" as date) as "Entries close", "Venue", "In/out", n("Entered") as "Entered", n("Started") as "Started", n("Women entered") as "Women entered", nullif("State", '') as "State", gbp("Entry fee") as "Entry fee"
from read_csv('tables/meets.csv', header = true, delim = ';', all_varchar = true) where regexp_matches("Meet no.", '^M[0-9]+$');
create view "results_2024" as
select "Meet no.", "Licence", "Event", "Race", n("Lane") as "Lane", secs("Entry time") as "Entry time", secs("Time run") as "Time run", n("Place") as "Place", nullif("Remark", '') as "Remark"
from read_csv('tables/results_2024.csv', header = true, skip = 1, delim = ',', all_varchar = true);
create view "yearly_bests" as
select "Event", "Sex", secs("Best 2016") as "Best 2016", secs("Best 2017") as "Best 2017", secs("Best 2018") as "Best 2018", secs("Best 2019") as "Best 2019", secs("Best 2020") as "Best 2020", secs("Best 2021") as "Best 2021", secs("Best 2022") as "Best 2022", secs("Best 2023") as "Best 2023", secs("Best 2024") as "Best 2024", secs("Record") as "Record", "Record holder", cast("Record set on" as date) as "Record set on"
from read_csv('tables/yearly_bests.tsv', header = true, delim = '\t', all_varchar = true);
