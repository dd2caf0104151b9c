package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/gateway/rest"

	"github.com/getkin/kin-openapi/openapi3"
)

const mostMistakes = 20 // that one error has

// parse reads the document with all that it refers to, and validates it; look
// is a first look at it.
func (s *source) parse(look func(data []byte) error) (*openapi3.T, error) {
	data, err := s.open(s.location())
	if err != nil {
		return nil, err
	}
	if err := checkVersion(data); err != nil {
		return nil, err
	}
	if err := look(data); err != nil {
		return nil, err
	}
	var refused error // the library wraps it more deeply with each reference
	loader := openapi3.NewLoader()
	loader.Context = s.ctx
	loader.ReadFromURIFunc = func(_ *openapi3.Loader, u *url.URL) ([]byte, error) {
		data, err := s.open(u)
		if err != nil && refused == nil {
			refused = err
		}
		return data, err
	}
	doc, err := loader.LoadFromDataWithPath(data, s.location())
	if refused != nil {
		return nil, refused
	}
	if err != nil {
		return nil, s.unresolved(mistakes(err))
	}
	// Examples, defaults and patterns are not what a request is made of, and
	// real descriptions are often careless with them.
	if err := doc.Validate(s.ctx, openapi3.EnableMultiError(), openapi3.DisableExamplesValidation(),
		openapi3.DisableSchemaDefaultsValidation(), openapi3.DisableSchemaPatternValidation()); err != nil {
		return nil, mistakes(err)
	}
	return doc, nil
}

func checkVersion(data []byte) error {
	var head struct {
		OpenAPI any `json:"openapi"`
		Swagger any `json:"swagger"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return errors.New("it is no OpenAPI description: expected an object with the key openapi")
	}
	version, _ := head.OpenAPI.(string)
	switch {
	case head.Swagger != nil:
		return fmt.Errorf("it is Swagger %v: expected OpenAPI 3.0 or 3.1; there are converters", rest.Cut(fmt.Sprint(head.Swagger), 20))
	case head.OpenAPI == nil:
		return errors.New("it is no OpenAPI description: expected an object with the key openapi")
	case version != "3" && !strings.HasPrefix(version, "3."):
		return fmt.Errorf("it is OpenAPI %s: expected 3.0 or 3.1", rest.Cut(fmt.Sprint(head.OpenAPI), 20))
	}
	return nil
}

// mistakes puts all that is wrong with a document into one error.
func mistakes(err error) error {
	var all openapi3.MultiError
	if !errors.As(err, &all) {
		all = openapi3.MultiError{err}
	}
	text := "it is no valid OpenAPI description:"
	for i, e := range all {
		if i == mostMistakes {
			text += fmt.Sprintf("\n  and %d mistakes more", len(all)-i)
			break
		}
		text += "\n  " + rest.Cut(strings.Join(strings.Fields(e.Error()), " "), 300)
	}
	return errors.New(text)
}
