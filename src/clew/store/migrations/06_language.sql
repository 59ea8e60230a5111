ALTER TABLE document ADD COLUMN language TEXT;
