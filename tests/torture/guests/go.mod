module redlockd.dev/torture

go 1.19

require redlockd.dev/client/go v0.1.0

replace redlockd.dev/client/go => ../../../client/go
