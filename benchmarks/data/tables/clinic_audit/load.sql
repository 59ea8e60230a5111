create view "appointments" as
select "appt_id", "pat_no", "clin_id", cast("bkd_dt" as date) as "bkd_dt", cast("appt_dt" as date) as "appt_dt", "appt_tm", "vis_typ", cast(nullif("wait_min", '') as integer) as "wait_min", cast(nullif("dur_min", '') as integer) as "dur_min", "rm_no", cast("fee_net" as decimal(10, 2)) as "fee_net", cast("fee_grs" as decimal(10, 2)) as "fee_grs", "st_cd"
from read_csv('tables/appointments.csv', header = true, delim = ',', all_varchar = true);
create view "wait_qtr" as
select "site_nm", "spec_cd", cast("tgt_dys" as integer) as "tgt_dys", cast("q1_23" as decimal(8, 1)) as "q1_23", cast("q2_23" as decimal(8, 1)) as "q2_23", cast("q3_23" as decimal(8, 1)) as "q3_23", cast("q4_23" as decimal(8, 1)) as "q4_23", cast("q1_24" as decimal(8, 1)) as "q1_24", cast("q2_24" as decimal(8, 1)) as "q2_24", cast("n_list" as integer) as "n_list", cast(replace("pct_in_tgt", '%', '') as decimal(5, 1)) as "pct_in_tgt"
from read_csv('tables/wait_qtr.csv', header = true, skip = 1, delim = ',', all_varchar = true) where "site_nm" not like '*%' and "spec_cd" not like '*%';
create view "clinicians" as
select "clin_id", "clin_nm", "role_cd", "spec_cd", "site_nm", cast(replace("fte_pct", ' %', '') as integer) as "fte_pct", cast("start_dt" as date) as "start_dt", cast(nullif("end_dt", '') as date) as "end_dt", cast(nullif("appr_due_dt", '') as date) as "appr_due_dt", "reg_no"
from read_csv('tables/clinicians.csv', header = true, delim = ',', quote = '"', all_varchar = true);
create view "prescriptions" as
select "rx_no", "appt_id", "drug_cd", cast("rx_dt" as date) as "rx_dt", cast("qty_presc" as integer) as "qty_presc", cast(nullif("disp_dt", '') as date) as "disp_dt", cast("qty_disp" as integer) as "qty_disp", cast(nullif("rpt_no", '') as integer) as "rpt_no", cast("cost_net" as decimal(10, 2)) as "cost_net", cast("cost_grs" as decimal(10, 2)) as "cost_grs", "rx_st"
from read_csv('tables/prescriptions.tsv', header = true, delim = '\t', all_varchar = true) where "rx_no" <> 'TOTAL';
create view "lookup_codes" as
select "cd_set", "cd", "cd_txt" from read_csv('tables/lookup_codes.csv', header = true, delim = ',', quote = '"', all_varchar = true);
