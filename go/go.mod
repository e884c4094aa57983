module calyx

go 1.19
