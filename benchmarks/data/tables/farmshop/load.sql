create macro eu(s) as cast(nullif(replace(replace(regexp_replace(s, '[^0-9,.-]', '', 'g'), '.', ''), ',', '.'), '') as decimal(14, 2));
create macro eu0(s) as coalesce(eu(s), cast(0 as decimal(14, 2)));
create macro day(s) as cast(strptime(nullif(s, ''), '%d.%m.%Y') as date);
create view "stock" as
select art_no, descr, grp_cd, uom, cast(eu(qty_oh) as decimal(10, 1)) as qty_oh, cast(eu(qty_rsv) as integer) as qty_rsv, cast(eu(qty_ord) as integer) as qty_ord, cast(eu(qty_min) as integer) as qty_min, eu(prc_pur) as prc_pur, eu(prc_sls) as prc_sls, cast(eu(vat_pct) as integer) as vat_pct, grw_no, day(bbd) as bbd, day(lst_dlv) as lst_dlv, shlf, st_cd
from read_csv('tables/stock.csv', header = true, delim = ';', all_varchar = true);
create view "growers" as
select grw_no, grw_nm, zip, town, cast(eu(dist_km) as decimal(8, 1)) as dist_km, cert_cd, day(sup_since) as sup_since, cast(pmt_days as integer) as pmt_days, cast(eu(mrgn_pct) as decimal(5, 1)) as mrgn_pct, nullif(dlv_day, '') as dlv_day, st_cd
from read_csv('tables/growers.csv', header = true, delim = ';', all_varchar = true);
create view "sales_mth" as
with raw as (select row_number() over () as n, * from read_csv('tables/sales_mth.csv', header = true, skip = 1, delim = ';', all_varchar = true)),
     filled as (select * replace (last_value(nullif(grp_cd, '') ignore nulls) over (order by n) as grp_cd) from raw)
select grp_cd, art_no, descr, eu0(jan) as jan, eu0(feb) as feb, eu0(mar) as mar, eu0(apr) as apr, eu0(may) as may, eu0(jun) as jun, eu0(jul) as jul, eu0(aug) as aug, eu0(sep) as sep, eu0(oct) as oct, eu(ytd) as ytd, eu(plan_ytd) as plan_ytd
from filled where coalesce(art_no, '') <> '' order by n;
create view "inv_in" as
select inv_no, ext_ref, grw_no, day(inv_dt) as inv_dt, day(due_dt) as due_dt, day(pd_dt) as pd_dt, eu(amt_net) as amt_net, eu(vat_amt) as vat_amt, eu(amt_grs) as amt_grs, eu(amt_pd) as amt_pd, cast(eu(dsc_pct) as decimal(5, 1)) as dsc_pct, st_cd
from read_csv('tables/inv_in.tsv', header = true, delim = '\t', all_varchar = true) where inv_no like 'ER%';
create view "codes" as
select tbl, cd, txt from read_csv('tables/codes.csv', header = true, delim = ';', all_varchar = true);
