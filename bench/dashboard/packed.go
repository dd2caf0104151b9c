package dashboard

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"slices"
)

// near is the maximum total difference of the channels of two colours for which one
// may replace the other.
const near = 14

// packed reduces the colours of a picture to a palette: pages have few distinguishable
// colours.
func packed(shot []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return nil, err
	}
	bounds := from.Bounds()
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(from.At(x, y)).(color.RGBA) }
	count := map[color.RGBA]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	palette := fewOf(count)
	nearest := map[color.RGBA]uint8{}
	to := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := at(x, y)
			i, known := nearest[c]
			if !known {
				i = uint8(palette.Index(c)) //nolint:gosec // a palette has at most 256
				nearest[c] = i
			}
			to.SetColorIndex(x, y, i)
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err = encoder.Encode(&out, to)
	return out.Bytes(), err
}

// fewOf picks colours by frequency, and skips those near a picked one.
func fewOf(count map[color.RGBA]int) (palette color.Palette) {
	var all []color.RGBA
	for c := range count {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.RGBA) int { return count[b] - count[a] })
	for _, c := range all {
		alike := func(p color.Color) bool {
			o := p.(color.RGBA)
			return apart(c.R, o.R)+apart(c.G, o.G)+apart(c.B, o.B) < near
		}
		if len(palette) < 256 && !slices.ContainsFunc(palette, alike) {
			palette = append(palette, c)
		}
	}
	return palette
}

func apart(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }
