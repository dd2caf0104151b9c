package httpapi_test

import (
	"encoding/json"

	"github.com/signalbox-ai/signalbox/api"
)

// exportStory exports the newest task, and imports a known task and a new one.
func (s *session) exportStory() {
	var page api.Export
	s.ask("export", "", "/api/export?limit=1", "").Want(s.T, 200, &page)
	s.ask("export", "A cursor that is none", "/api/export?after=there", "")
	other := page.Tasks[0]
	other.QueueID, other.Key, other.KeyHash = "queue-06f0v4m2k0a1b2c3d4e5f6g7h8", "", ""
	body, err := json.Marshal(api.ImportRequest{Tasks: []api.ExportedTask{page.Tasks[0], other}})
	if err != nil {
		s.T.Fatal(err)
	}
	s.ask("import", "", "/api/import", string(body)).Want(s.T, 200, nil)
}
