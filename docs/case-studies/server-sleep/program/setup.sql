CREATE TABLE journal (line text);
CREATE TABLE imports (number int);
