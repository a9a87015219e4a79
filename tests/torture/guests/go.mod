module redlockd.dev/torture

go 1.19

require redlockd.dev/client/go v0.2.0

replace redlockd.dev/client/go => ../../../client/go
