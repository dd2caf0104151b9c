package standalone

import "github.com/signalbox-ai/signalbox/internal/atomicfile"

// FailWrites makes writes fail with err; nil: no longer.
func (st *Store) FailWrites(err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.write = atomicfile.Write
	if err != nil {
		st.write = func(string, []byte) error { return err }
	}
}

// DisableEndedCache makes each status request ask the director.
func (s *Server) DisableEndedCache() { s.ended.recheckAfter = 0 }
