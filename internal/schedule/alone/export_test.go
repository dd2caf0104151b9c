package alone

import "github.com/signalbox-ai/signalbox/internal/atomicfile"

// FailWrites has writes of the book fail; nil: no longer.
func (b *Book) FailWrites(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.write = atomicfile.Write
	if err != nil {
		b.write = func(string, []byte) error { return err }
	}
}

// AskAlways has each look at the status ask the director anew.
func (s *Server) AskAlways() { s.ended.fresh = 0 }
