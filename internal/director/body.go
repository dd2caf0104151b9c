package director

import (
	"errors"
	"io"
	"net/http"
	"os"
	"reflect"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/strictjson"
)

// maxBodyBytes is how long a body may be.
const maxBodyBytes = 1 << 20

// decode reads the JSON body of a request into the struct that into points
// to, strictly: every member must be a known field of the right type, once.
// A member that is null counts as left out. With optional the body may be
// missing.
func decode(w http.ResponseWriter, r *http.Request, into any, optional bool) error {
	return decodeUpTo(w, r, maxBodyBytes, into, optional)
}

// decodeCall is decode for a call of a tool: its arguments may be as long over
// HTTP as over MCP.
func decodeCall(w http.ResponseWriter, r *http.Request, into any) error {
	return decodeUpTo(w, r, maxMCPBytes, into, true)
}

func decodeUpTo(w http.ResponseWriter, r *http.Request, limit int64, into any, optional bool) error {
	data, err := readBody(w, r, limit)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		if optional {
			return nil
		}
		return signalbox.Errorf(signalbox.CodeValidation, "the body is empty; want a JSON object")
	}
	tree, err := parse(data)
	if err != nil {
		return err
	}
	return bind(reflect.ValueOf(into).Elem(), tree, "")
}

// readBody reads a body of at most that many bytes to its end.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLargeBody(limit) // unread: who sent Expect: 100-continue is not asked for it
	}
	data, err := arrived(w, r, limit)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, tooLargeBody(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, signalbox.Errorf(signalbox.CodeValidation, "the body did not arrive within %s", bodyTimeout)
	case err != nil:
		return nil, signalbox.Errorf(signalbox.CodeValidation, "the body could not be read to its end")
	}
	// The deadline was for the body; what follows may be a long poll.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return data, nil
}

// smallBody is a length up to which memory is set aside at once, on the word of
// who sends it.
const smallBody = 4 << 10

func arrived(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength < 0 || r.ContentLength > smallBody {
		return io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	}
	data := make([]byte, r.ContentLength) // more than that net/http does not hand out
	_, err := io.ReadFull(r.Body, data)
	return data, err
}

func tooLargeBody(limit int64) error {
	return signalbox.Errorf(signalbox.CodeTooLarge, "the body is larger than %d bytes, the most that is allowed", limit)
}

// parse reads a JSON text into nil, string, bool, json.Number, []any and
// *strictjson.Object.
func parse(data []byte) (any, error) {
	tree, err := strictjson.Parse(data)
	var wrong *strictjson.Error
	switch {
	case !errors.As(err, &wrong):
		return tree, err
	case wrong.Path == "":
		return nil, signalbox.Errorf(signalbox.CodeValidation, "the body %s", wrong.What)
	}
	return nil, signalbox.Invalid(clip(wrong.Path), "%s %s", clip(wrong.Path), wrong.What)
}
