package proc

func putStamp(stamp) (restore func()) { return func() {} }

func stampOf(int) stamp { return 0 }
