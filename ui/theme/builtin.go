package theme

// The built-in themes. Text stays the terminal's own foreground; greys and
// accents are chosen to keep 4.5:1 on usual backgrounds (faint: 3:1).
var (
	darkSpec = map[string]string{
		"dim": "#8b929c", "faint": "#545b66", "title": "bold", "heading": "#8b929c",
		"selection": "on #2b313c", "mark": "bold #e2b25d", "key": "#b9c0ca",
		"status.input": "bold #e2b25d", "status.working": "#6fb3f2", "status.done": "#86b97c",
		"status.failed": "#ef7b78", "status.cancelled": "#8b929c", "status.queued": "#8b929c", "status.unknown": "#c39ad6",
		"bar": "#6fb3f2", "warn": "#e2b25d", "error": "#ef7b78", "link": "underline #6fb3f2",
		"field": "on #23272f", "fieldOn": "on #343b48", "fieldError": "#ef7b78", "match": "#1c1f24 on #e2b25d", "cursor": "reverse",
		"code.name": "#6fb3f2", "code.string": "#a5c99d", "code.number": "#d7a977", "code.word": "#c39ad6",
	}
	lightSpec = map[string]string{
		"dim": "#5f6670", "faint": "#9aa1ab", "title": "bold", "heading": "#5f6670",
		"selection": "on #dde4ee", "mark": "bold #8a5a00", "key": "#3a4049",
		"status.input": "bold #8a5a00", "status.working": "#0b5fb0", "status.done": "#2f6f2a",
		"status.failed": "#b3261e", "status.cancelled": "#5f6670", "status.queued": "#5f6670", "status.unknown": "#7a3e96",
		"bar": "#0b5fb0", "warn": "#8a5a00", "error": "#b3261e", "link": "underline #0b5fb0",
		"field": "on #eef1f5", "fieldOn": "on #d5deea", "fieldError": "#b3261e", "match": "#1c1f24 on #f3cf7a", "cursor": "reverse",
		"code.name": "#0b5fb0", "code.string": "#2f6f2a", "code.number": "#8a4b08", "code.word": "#7a3e96",
	}
	contrastDarkSpec = map[string]string{
		"text": "#ffffff", "dim": "#d8d8d8", "faint": "#a0a0a0", "heading": "bold #ffffff", "key": "bold #ffffff",
		"selection": "#ffffff on #00408a", "status.input": "bold #ffd75f", "status.working": "bold #7fd0ff", "status.done": "bold #7fff7f",
		"status.failed": "bold #ff8f8f", "status.cancelled": "#d8d8d8", "status.queued": "#d8d8d8", "status.unknown": "bold #e5a5ff",
		"warn": "bold #ffd75f", "error": "bold #ff8f8f", "bar": "#7fd0ff", "fieldError": "bold #ff8f8f", "field": "#ffffff on #303030", "fieldOn": "#000000 on #ffffff",
	}
	contrastLightSpec = map[string]string{
		"text": "#000000", "dim": "#303030", "faint": "#5a5a5a", "heading": "bold #000000", "key": "bold #000000",
		"selection": "#000000 on #b8d8ff", "status.input": "bold #6a4200", "status.working": "bold #003f80", "status.done": "bold #004d00",
		"status.failed": "bold #900000", "status.cancelled": "#303030", "status.queued": "#303030", "status.unknown": "bold #5a0080",
		"warn": "bold #6a4200", "error": "bold #900000", "bar": "#003f80", "fieldError": "bold #900000", "field": "#000000 on #e4e4e4", "fieldOn": "#ffffff on #000000",
	}
	// Blue and orange, the pair that every common kind of colour blindness tells apart.
	blindDarkSpec = map[string]string{
		"status.input": "bold #f0e442", "status.working": "#b9c0ca", "status.done": "#56b4e9", "status.failed": "#e69f00",
		"error": "#e69f00", "fieldError": "#e69f00", "bar": "#56b4e9", "warn": "#f0e442", "mark": "bold #f0e442", "code.string": "#b9c0ca",
	}
	blindLightSpec = map[string]string{
		"status.input": "bold #5c4a00", "status.working": "#3a4049", "status.done": "#0060a0", "status.failed": "#a04a00",
		"error": "#a04a00", "fieldError": "#a04a00", "bar": "#0060a0", "warn": "#5c4a00", "mark": "bold #5c4a00", "code.string": "#3a4049",
	}
	monoSpec = map[string]string{
		"dim": "faint", "faint": "faint", "title": "bold", "heading": "faint", "selection": "reverse", "mark": "bold",
		"key": "bold", "status.input": "bold", "status.failed": "bold", "warn": "bold", "error": "bold",
		"link": "underline", "field": "underline", "fieldOn": "reverse", "fieldError": "bold", "match": "reverse", "cursor": "reverse",
		"status.cancelled": "faint", "status.queued": "faint", "code.name": "bold",
	}
)
