create macro chf(s) as cast(nullif(regexp_replace(s, '[^0-9.-]', '', 'g'), '') as decimal(14, 2));
create macro day(s) as cast(strptime(nullif(s, ''), '%d.%m.%Y') as date);
create view "flats" as
select obj_no, bldg, addr, flr, cast(rms as decimal(4, 1)) as rms, cast(area_m2 as decimal(8, 1)) as area_m2, chf(rent_net) as rent_net, chf(anc) as anc, chf(rent_gr) as rent_gr, st_cd
from read_csv('tables/flats.csv', header = true, delim = ',', all_varchar = true);
create view "tenants" as
select ten_no, nm, obj_no, day(lse_st) as lse_st, day(lse_end) as lse_end, cast(pers as integer) as pers, chf(dep_chf) as dep_chf, nullif(dep_tp, '') as dep_tp, chf(shr_chf) as shr_chf, pay_mth
from read_csv('tables/tenants.csv', header = true, delim = ',', all_varchar = true);
create view "rents_2024" as
select obj_no, ten_no, chf(jan24) as jan24, chf(feb24) as feb24, chf(mar24) as mar24, chf(apr24) as apr24, chf(may24) as may24, chf(jun24) as jun24, chf(jul24) as jul24, chf(aug24) as aug24, chf(sep24) as sep24, chf(oct24) as oct24, chf(nov24) as nov24, chf(dec24) as dec24, chf(rcvd_tot) as rcvd_tot, chf(due_tot) as due_tot, chf(bal) as bal
from read_csv('tables/rents_2024.csv', header = true, skip = 1, delim = ';', all_varchar = true) where coalesce(ten_no, '') <> '';
create view "repairs_2024" as
select rep_no, obj_no, day(rptd) as rptd, day(ordd) as ordd, day(done) as done, trd_cd, descr, nullif(contr, '') as contr, chf(est_chf) as est_chf, chf(inv_chf) as inv_chf, prio, st_cd
from read_csv('tables/repairs_2024.csv', header = true, delim = ',', all_varchar = true);
create view "meters" as
select mtr_no, obj_no, mtr_tp, unit, day(inst_dt) as inst_dt, cast(chf(rdg_1222) as decimal(10, 1)) as rdg_1222, cast(chf(rdg_1223) as decimal(10, 1)) as rdg_1223, cast(chf(rdg_1224) as decimal(10, 1)) as rdg_1224, cast(chf(cons_23) as decimal(10, 1)) as cons_23, cast(chf(cons_24) as decimal(10, 1)) as cons_24
from read_csv('tables/meters.tsv', header = true, delim = '\t', all_varchar = true);
create view "codes" as
select fld, cd, txt from read_csv('tables/codes.csv', header = true, delim = ',', all_varchar = true);
