module redlockd.dev/client/go

go 1.19
