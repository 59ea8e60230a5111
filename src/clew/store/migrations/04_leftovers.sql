INSERT OR IGNORE INTO state VALUES ('leftovers', 0);
