create macro usd(s) as cast(nullif(regexp_replace(s, '[^0-9.-]', '', 'g'), '') as decimal(14, 2));
create macro whole(s) as cast(nullif(regexp_replace(s, '[^0-9-]', '', 'g'), '') as integer);
create macro day(s) as cast(strptime(nullif(s, ''), '%m/%d/%Y') as date);
create view "loc_cd" as
select "LOC_CD", "LOC_DESC", whole("FLR_NO") as "FLR_NO", whole("AREA_SQFT") as "AREA_SQFT", whole("MAX_LUX") as "MAX_LUX", nullif("GUARD_NM", '') as "GUARD_NM"
from read_csv('tables/loc_cd.csv', header = true, delim = ',', all_varchar = true);
create view "obj_mstr" as
select "OBJ_ID", "ACC_NO", "TTL", "MKR_NM", whole("YR_MADE") as "YR_MADE", "MEDIUM", "DEPT_CD", nullif("LOC_CD", '') as "LOC_CD", "STAT_CD", usd("APPR_VAL_USD") as "APPR_VAL_USD", usd("INS_VAL_USD") as "INS_VAL_USD", nullif("ACQ_MTHD", '') as "ACQ_MTHD", day("ACQ_DT") as "ACQ_DT", day("LAST_INV_DT") as "LAST_INV_DT", whole("COND_SCR") as "COND_SCR"
from read_csv('tables/obj_mstr.csv', header = true, delim = ',', all_varchar = true) where "ACC_NO" <> '';
create view "loan_out" as
select "LOAN_NO", "OBJ_ID", "BORR_NM", "BORR_CITY", "BORR_ST", day("PLAN_OUT_DT") as "PLAN_OUT_DT", day("ACT_OUT_DT") as "ACT_OUT_DT", day("DUE_DT") as "DUE_DT", day("RTN_DT") as "RTN_DT", usd("FEE_USD") as "FEE_USD", usd("CRATE_USD") as "CRATE_USD", usd("SHIP_USD") as "SHIP_USD", usd("TOT_USD") as "TOT_USD", "STAT_CD"
from read_csv('tables/loan_out.csv', header = true, delim = ',', all_varchar = true) where "LOAN_NO" like 'LN%';
create view "donors" as
select "DNR_ID", "DNR_NM", "DNR_TYP", "CITY", "ST", "TIER_CD", day("FIRST_GIFT_DT") as "FIRST_GIFT_DT", day("LAST_GIFT_DT") as "LAST_GIFT_DT", whole("GIFT_CNT") as "GIFT_CNT", usd("PLDG_USD") as "PLDG_USD", usd("PD_USD") as "PD_USD", usd("BAL_USD") as "BAL_USD", cast(usd("PD_PCT") as decimal(5, 1)) as "PD_PCT", "ANON_FLG"
from read_csv('tables/donors.csv', header = true, delim = ',', all_varchar = true) where "DNR_NM" <> '';
create view "vis_mth_2024" as
select "REC_NO", "SITE_CD", "VIS_SEG", whole("JAN_24") as "JAN_24", whole("FEB_24") as "FEB_24", whole("MAR_24") as "MAR_24", whole("APR_24") as "APR_24", whole("MAY_24") as "MAY_24", whole("JUN_24") as "JUN_24", whole("JUL_24") as "JUL_24", whole("AUG_24") as "AUG_24", whole("SEP_24") as "SEP_24", whole("OCT_24") as "OCT_24", whole("NOV_24") as "NOV_24", whole("DEC_24") as "DEC_24", whole("TOT_24") as "TOT_24", whole("TOT_23") as "TOT_23"
from read_csv('tables/vis_mth_2024.tsv', header = true, delim = '\t', all_varchar = true) where "REC_NO" <> '';
