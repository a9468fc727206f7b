package form

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// numberText is JSON's grammar of a number.
var numberText = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// maxExponent bounds 1e999999999, which exact arithmetic would write out.
const maxExponent = 400

// boundedNumber reports whether a number in JSON's grammar can be handled
// exactly without great cost.
func boundedNumber(s string) bool {
	if len(s) > 1000 {
		return false
	}
	i := strings.IndexAny(s, "eE")
	if i < 0 {
		return true
	}
	e, err := strconv.Atoi(s[i+1:])
	return err == nil && e >= -maxExponent && e <= maxExponent
}

// parseNumber reads the whole text as a number, exactly.
func parseNumber(s string) (*big.Rat, bool) {
	if !numberText.MatchString(s) || !boundedNumber(s) {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

// wholeNumber writes an integral number as plain digits: 1e3 and 1000.0 are
// both 1000, and no digit is lost.
func wholeNumber(r *big.Rat) string { return r.Num().String() }
