package steplimit_test

import (
	"context"
	"fmt"

	"github.com/signalbox-ai/signalbox/steplimit"
)

func Example() {
	limiter, err := steplimit.New(steplimit.Options{Max: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	calls := []steplimit.Call{
		{ID: "call_1", Name: "web_search", Arguments: `{"q": "block signals"}`},
		{ID: "call_2", Name: "web_search", Arguments: `{"q": "token  working"}`},
	}
	results := limiter.Run(context.Background(), 1, calls, func(_ context.Context, c steplimit.Call) (steplimit.Answer, error) {
		return steplimit.Answer{Text: "found " + c.Arguments}, nil
	})
	for _, r := range results {
		fmt.Println(r.Outcome+":", r.Text)
	}
	// Output:
	// executed: found {"q": "block signals"}
	// refused: The tool web_search with arguments {"q": "token  working"} could not be executed due to rate limit. Call it again.
}
