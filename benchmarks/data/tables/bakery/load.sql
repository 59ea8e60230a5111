create macro gbp(s) as cast(nullif(regexp_replace(s, '[^0-9.-]', '', 'g'), '') as decimal(14, 2));
create macro num(s) as cast(nullif(regexp_replace(s, '[^0-9.-]', '', 'g'), '') as decimal(14, 1));
create macro whole(s) as cast(nullif(regexp_replace(s, '[^0-9.-]', '', 'g'), '') as integer);
create macro day(s) as cast(strptime(nullif(s, ''), '%d/%m/%Y') as date);
create view "shops" as
select "Shop no.", "Shop", "Town", "Postcode", "Manager", day("Opened on") as "Opened on", "Status", whole("Seats") as "Seats", gbp("Rent per month") as "Rent per month", gbp("Takings 2024") as "Takings 2024", gbp("Target 2025") as "Target 2025", whole("Staff budgeted") as "Staff budgeted", whole("Staff in post") as "Staff in post", nullif("Remarks", '') as "Remarks"
from read_csv('tables/shops.csv', header = true, delim = ',', all_varchar = true);
create view "products" as
select "Code", "Product", "Range", "Main supplier", whole("VAT") as "VAT", gbp("Cost price") as "Cost price", gbp("Shop price (incl. VAT)") as "Shop price (incl. VAT)", gbp("Trade price (excl. VAT)") as "Trade price (excl. VAT)", whole("Shelf life (days)") as "Shelf life (days)", nullif("Allergens", '') as "Allergens", day("Price last changed") as "Price last changed"
from read_csv('tables/products.tsv', header = true, delim = '\t', all_varchar = true);
create view "daily_orders" as
select "Order", day("Date") as "Date", "Shop no.", "Product code", whole("Ordered") as "Ordered", whole("Delivered") as "Delivered", whole("Sent back") as "Sent back", gbp("Net") as "Net", gbp("VAT amount") as "VAT amount", gbp("Gross") as "Gross", "St.", nullif("Van driver", '') as "Van driver"
from read_csv('tables/daily_orders.csv', header = true, delim = ',', all_varchar = true) where "Order" like 'DO-%';
create view "suppliers" as
select "Supplier no.", "Name", "Town", "What they bring", "Contact", "Phone", whole("Lead time (days)") as "Lead time (days)", gbp("Minimum order") as "Minimum order", num("Discount") as "Discount", gbp("Spend 2023") as "Spend 2023", gbp("Spend 2024") as "Spend 2024", day("Last delivery") as "Last delivery", "Code", "Payment terms"
from read_csv('tables/suppliers.csv', header = true, delim = ';', all_varchar = true) where "Supplier no." like 'S-%';
create view "rota_2025" as
select "Staff no.", "Name", nullif("Shop no.", '') as "Shop no.", "Job", gbp("Rate per hour") as "Rate per hour", num("Contract hours p.w.") as "Contract hours p.w.", num("Jan") as "Jan", num("Feb") as "Feb", num("Mar") as "Mar", num("Apr") as "Apr", num("May") as "May", num("Jun") as "Jun", num("Planned Jan–Jun") as "Planned Jan–Jun", num("Worked Jan–Jun") as "Worked Jan–Jun", num("Holiday left (days)") as "Holiday left (days)"
from read_csv('tables/rota_2025.csv', header = true, skip = 1, delim = ',', all_varchar = true) where coalesce("Staff no.", '') <> '';
