module tracebraid.test/workloads

go 1.22
