package proc_test

func takeOffStamp() {}
func endThread()    {}
