package sqlite

// The checksum key is the one given when the file was created. It is kept elsewhere, so that a process that
// can only write the file cannot make a checksum. If none was given, the key is in the file; then checksums
// detect accidental damage, but no deliberate changes.

// check identifies the key without revealing it.
func (k key) check() int64 { return int64(k.sum(sumCheck, 0, nil) >> 1) } //nolint:gosec // half of the numbers

// takeKey loads the key of the rows. With another key nothing is known about them: they are
// accepted and get new checksums.
func (b *Backend) takeKey(own []byte, check int64) error {
	c := b.writer
	c.key = keyOf(or(b.givenKey, own))
	if c.key.check() == check {
		return nil
	}
	b.log.Warn("the rows of the database were written under another key than that of the data folder: whether they were changed since cannot be told; they are taken as they are",
		"path", b.opts.Path)
	return c.transaction(c.resumAll)
}

// resumAll recomputes all checksums.
func (c *conn) resumAll() error {
	for _, table := range []struct {
		kind     int64
		get, put stmtID
	}{
		{sumTask, stSumTasks, stSumTask}, {sumRequest, stSumRequests, stSumRequest}, {sumResult, stSumResults, stSumResult},
	} {
		for after, more := int64(-1<<62), true; more; {
			var err error
			if after, more, err = c.resumSome(table.kind, table.get, table.put, after); err != nil {
				return err
			}
		}
	}
	q := c.on(stMetaCheck)
	return q.int(c.key.check()).run()
}

// resumSome does this for the next rows of a table.
func (c *conn) resumSome(kind int64, get, put stmtID, after int64) (last int64, more bool, err error) {
	const most = 1000
	var seqs []int64
	var bodies, texts [][]byte
	q := c.on(get)
	for q.int(after).most(most); q.next(); {
		seqs, bodies = append(seqs, q.intAt(0)), append(bodies, q.bytesAt(1))
		var text []byte
		for col := 2; col < q.st.ColumnCount(); col++ {
			text = q.appendText(text, col)
		}
		texts = append(texts, text)
	}
	if err := q.end(); err != nil {
		return 0, false, err
	}
	for n, seq := range seqs {
		last = seq
		if len(bodies[n]) < sumBytes {
			continue // it is damaged with either key
		}
		b := c.key.summed(c.row[:0], kind, seq, func(b []byte) []byte { return append(append(b, bodies[n][sumBytes:]...), texts[n]...) })
		q := c.on(put)
		if err := q.int(seq).bytes(b[:len(bodies[n])]).run(); err != nil {
			return 0, false, err
		}
	}
	return last, len(seqs) == most, nil
}
