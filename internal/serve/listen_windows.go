package serve

import "golang.org/x/sys/windows"

const addressInUse = windows.WSAEADDRINUSE
