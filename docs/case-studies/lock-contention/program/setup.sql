CREATE TABLE stock (item int PRIMARY KEY, left_over int, booked int);
INSERT INTO stock SELECT i, 1000000, 0 FROM generate_series(1, 10) i;
CREATE TABLE sales (price int, note text);
INSERT INTO sales SELECT i % 100, repeat('sold item ' || i || ' ', 10) FROM generate_series(1, 120000) i;
