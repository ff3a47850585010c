//! Lines and columns: of an offset in the source, and from a place in what runs back to the source. No line is ever put
//! in or taken out but one at the end, so that a place can only be moved along its line.

/// Where the places of a script are in its source. Lines and columns begin at 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// What was put in, in order.
    inserted: Vec<Inserted>,
    /// The lines of the script on which a byte is not a column, in order.
    wide: Vec<(u32, String)>,
    /// Where the source ends.
    end: (u32, u32),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inserted {
    /// Where in the source it was put in.
    line: u32,
    column: u32,
    /// How many code points.
    length: u32,
}

impl Places {
    /// The place in the source, its column in code points. The column in the script is one as QuickJS counts them, in
    /// bytes. What was put in is where it was put in.
    pub fn original(&self, line: u32, column: u32) -> (u32, u32) {
        if line > self.end.0 {
            return self.end;
        }
        let column = self.code_points(line, column.max(1));
        let first = self.inserted.partition_point(|inserted| inserted.line < line);
        let on_line = self.inserted.iter().skip(first).take_while(|inserted| inserted.line == line);
        let mut shift = 0;
        for inserted in on_line {
            let start = inserted.column + shift;
            if column < start {
                break;
            }
            if column < start + inserted.length {
                return (line, inserted.column);
            }
            shift += inserted.length;
        }
        (line, column - shift)
    }

    fn code_points(&self, line: u32, column: u32) -> u32 {
        let Ok(index) = self.wide.binary_search_by_key(&line, |(line, _)| *line) else {
            return column;
        };
        let text = self.wide.get(index).map(|(_, text)| text.as_str()).unwrap_or_default();
        let before = text.char_indices().filter(|(at, _)| *at < column as usize).count();
        // A place within a character is that of the character, and one behind the line is as far behind it.
        let behind = (column as usize).saturating_sub(text.len());
        bounded(before.max(1) + behind)
    }

    pub(crate) fn insert(&mut self, (line, column): (u32, u32), text: &str) {
        let length = count(text);
        self.inserted.push(Inserted { line, column, length });
    }

    /// When the script is written.
    pub(crate) fn finish(&mut self, code: &str, end: (u32, u32)) {
        self.end = end;
        if !code.is_ascii() {
            let lines = (1..).zip(code.split('\n'));
            let wide = lines.filter(|(_, line)| !line.is_ascii());
            self.wide = wide.map(|(number, line)| (number, line.to_owned())).collect();
        }
    }
}

/// Reads a text from its beginning to its end and knows the line and the column.
pub(crate) struct Reader<'s> {
    source: &'s str,
    offset: usize,
    line: u32,
    column: u32,
}

impl<'s> Reader<'s> {
    pub(crate) fn new(source: &'s str) -> Reader<'s> {
        Reader { source, offset: 0, line: 1, column: 1 }
    }

    /// The place of an offset, which must not be before the last one asked for.
    pub(crate) fn place(&mut self, offset: usize) -> (u32, u32) {
        let passed = self.source.get(self.offset..offset).unwrap_or_default();
        match passed.rfind('\n') {
            Some(last) => {
                self.line += newlines(passed);
                self.column = 1 + count(&passed[last + 1..]);
            }
            None => self.column += count(passed),
        }
        self.offset = self.offset.max(offset);
        (self.line, self.column)
    }
}

/// The place of an offset.
pub(crate) fn place(source: &str, offset: usize) -> (u32, u32) {
    let mut offset = offset.min(source.len());
    while !source.is_char_boundary(offset) {
        offset -= 1;
    }
    Reader::new(source).place(offset)
}

fn newlines(text: &str) -> u32 {
    bounded(text.bytes().filter(|byte| *byte == b'\n').count())
}

fn count(text: &str) -> u32 {
    bounded(text.chars().count())
}

/// Sources are far smaller than 4 GiB.
fn bounded(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
