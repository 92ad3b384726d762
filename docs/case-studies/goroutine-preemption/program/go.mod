module prices

go 1.25
