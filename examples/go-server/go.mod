module tracebraid.test/go-server

go 1.22
