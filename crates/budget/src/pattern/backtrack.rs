//! Patterns with look-around or back-references. `fancy-regex` parses them, but its matcher hands parts to searches
//! that nobody can interrupt, so that a look-ahead scans the rest of the text at every position. This matcher counts
//! every step. Without back-references, whether the end of a part can be reached depends on nothing but where the match
//! is in pattern and text; so it is remembered, each choice of the pattern is tried once at each position, and the work
//! is linear in the text.

use std::collections::HashMap;

use fancy_regex::{Assertion, Expr, LookAround};
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};

use super::{Error, Flags, Translated};
use crate::{Budget, Exhausted};

/// How many instructions a pattern may come to, once its repetitions are written out.
const OPS_MAX: usize = 32 * 1024;
/// What one match may remember. A pattern that would need more on a text remembers nothing, and is bounded by its steps.
const MEMO_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many steps are taken between two looks at the budget.
const BATCH_STEPS: u64 = 1024;

#[derive(Debug)]
pub(super) struct Backtracking {
    ops: Vec<Op>,
    classes: Vec<CharClass>,
    /// How many groups and marks of loops there are to remember positions for.
    registers: usize,
    /// How many instructions remember whether they can reach the end.
    memos: usize,
    /// Whether what was found at a position holds whenever the match comes by again.
    can_remember: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    /// Inside a look-behind, which JavaScript matches from its end.
    Backward,
}

#[derive(Debug)]
enum Op {
    Class {
        class: usize,
        direction: Direction,
    },
    /// Tries one, then the other.
    Split {
        first: usize,
        second: usize,
        memo: usize,
    },
    Jump(usize),
    Save(usize),
    /// Fails where the position is the one that was saved: an iteration that matched nothing.
    Progress(usize),
    Backref {
        group: usize,
        ignore_case: bool,
        direction: Direction,
    },
    UnlessSet {
        group: usize,
        to: usize,
    },
    /// What follows, up to its own end, is looked for and not consumed.
    Look {
        is_negative: bool,
        then: usize,
        memo: usize,
    },
    Start,
    End,
    LineStart,
    LineEnd,
    Accept,
}

/// A set of characters.
#[derive(Debug)]
struct CharClass {
    ascii: u128,
    ranges: Box<[(char, char)]>,
}

impl CharClass {
    fn new(class: &ClassUnicode) -> Self {
        let ranges: Box<[(char, char)]> =
            class.ranges().iter().map(|range| (range.start(), range.end())).collect();
        let mut ascii = 0;
        for code in 0..128_u8 {
            if is_within(&ranges, char::from(code)) {
                ascii |= 1 << code;
            }
        }
        Self { ascii, ranges }
    }

    fn contains(&self, found: char) -> bool {
        if found.is_ascii() {
            return self.ascii >> (found as u32) & 1 == 1;
        }
        is_within(&self.ranges, found)
    }
}

fn is_within(ranges: &[(char, char)], found: char) -> bool {
    let after = ranges.partition_point(|(_, last)| *last < found);
    ranges.get(after).is_some_and(|(first, _)| *first <= found)
}

impl Backtracking {
    pub(super) fn compile(translated: &Translated) -> Result<Self, Error> {
        let text = with_flags(translated);
        let tree = fancy_regex::Expr::parse_tree(&text).map_err(super::explain)?;
        let mut compiler = Compiler { groups: HashMap::new(), ..Compiler::default() };
        compiler.number_groups(&tree.expr);
        compiler.marks = 2 * (compiler.groups.len() + 1);
        compiler.expr(&tree.expr)?;
        compiler.push(Op::Accept)?;
        let Compiler { ops, classes, marks, memos, .. } = compiler;
        let can_remember = !compiler.has_backrefs && !compiler.has_idle_look;
        let classes = classes.iter().map(CharClass::new).collect();
        Ok(Self { ops, classes, registers: marks, memos, can_remember })
    }

    /// Whether the pattern matches somewhere.
    pub(super) fn is_match(&self, text: &str, budget: &Budget) -> Result<bool, Exhausted> {
        if u32::try_from(text.len()).is_err() {
            return Err(budget.exhausted());
        }
        let memo_bytes = (self.memos * (text.len() + 1)).div_ceil(4);
        let remembers = self.can_remember && memo_bytes <= MEMO_BYTES_MAX;
        let memo = if remembers { vec![0; memo_bytes] } else { Vec::new() };
        budget.spend_scan(memo.len())?;
        let mut run = Run {
            program: self,
            text,
            budget,
            unpaid: 0,
            stack: Vec::new(),
            saved: vec![None; self.registers],
            undo: Vec::new(),
            memo,
            looks: 0,
        };
        let mut found = false;
        let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
        for start in starts {
            if run.reaches_end(0, start)? {
                found = true;
                break;
            }
        }
        budget.spend(run.unpaid)?;
        Ok(found)
    }

    pub(super) fn bytes(&self) -> usize {
        let ranges =
            self.classes.iter().map(|class| class.ranges.len() * size_of::<(char, char)>());
        self.ops.len() * size_of::<Op>() + ranges.sum::<usize>()
    }
}

/// The text of a pattern with its flags, for the parser.
pub(super) fn with_flags(translated: &Translated) -> String {
    let Flags { ignore_case, multi_line, dot_all, .. } = translated.flags;
    let letters = [(ignore_case, 'i'), (multi_line, 'm'), (dot_all, 's')];
    let letters: String =
        letters.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).collect();
    match letters.as_str() {
        "" => translated.text.clone(),
        letters => format!("(?{letters}){}", translated.text),
    }
}

#[derive(Default)]
struct Compiler {
    ops: Vec<Op>,
    classes: Vec<ClassUnicode>,
    /// Where the class of a part is that was parsed before.
    parsed: HashMap<(String, bool), usize>,
    /// The numbers of the groups, by where they are in the tree: a repetition writes them out more than once.
    groups: HashMap<*const Expr, usize>,
    /// The next register for the position at which an iteration began.
    marks: usize,
    memos: usize,
    has_backrefs: bool,
    /// A loop inside a look-around may go round without consuming anything.
    has_idle_look: bool,
    looks: usize,
    is_backward: bool,
}

impl Compiler {
    fn number_groups(&mut self, expr: &Expr) {
        match expr {
            Expr::Group(inner) => {
                let number = self.groups.len() + 1;
                self.groups.insert(std::ptr::from_ref(expr), number);
                self.number_groups(inner);
            }
            Expr::Backref { .. } | Expr::BackrefExistsCondition { .. } => self.has_backrefs = true,
            expr => expr.children_iter().for_each(|child| self.number_groups(child)),
        }
    }

    fn push(&mut self, op: Op) -> Result<usize, Error> {
        if self.ops.len() >= OPS_MAX {
            return Err(Error::TooLarge);
        }
        self.ops.push(op);
        Ok(self.ops.len() - 1)
    }

    fn direction(&self) -> Direction {
        if self.is_backward { Direction::Backward } else { Direction::Forward }
    }

    fn memo(&mut self) -> usize {
        self.memos += 1;
        self.memos - 1
    }

    fn class(
        &mut self,
        text: &str,
        ignore_case: bool,
        parse: impl FnOnce() -> Result<ClassUnicode, Error>,
    ) -> Result<(), Error> {
        let key = (text.to_owned(), ignore_case);
        let class = match self.parsed.get(&key) {
            Some(class) => *class,
            None => {
                self.classes.push(parse()?);
                self.parsed.insert(key, self.classes.len() - 1);
                self.classes.len() - 1
            }
        };
        let direction = self.direction();
        self.push(Op::Class { class, direction }).map(drop)
    }

    fn expr(&mut self, expr: &Expr) -> Result<(), Error> {
        match expr {
            Expr::Empty => Ok(()),
            Expr::Any { newline, crlf } => {
                let text = if *crlf { "(?R)." } else { "." };
                self.class(text, *newline, || Ok(any(*newline, *crlf)))
            }
            Expr::Assertion(assertion) => {
                let op = match assertion {
                    Assertion::StartText => Op::Start,
                    Assertion::EndText => Op::End,
                    Assertion::StartLine { .. } => Op::LineStart,
                    Assertion::EndLine { .. } => Op::LineEnd,
                    _ => return Err(unsupported()),
                };
                self.push(op).map(drop)
            }
            Expr::Literal { val, casei } => {
                let mut letters: Vec<char> = val.chars().collect();
                if self.is_backward {
                    letters.reverse();
                }
                letters.into_iter().try_for_each(|letter| {
                    let text = format!("\\{letter}");
                    self.class(&text, *casei, || {
                        let range = ClassUnicodeRange::new(letter, letter);
                        let mut class = ClassUnicode::new([range]);
                        if *casei {
                            class.try_case_fold_simple().map_err(|_| unsupported())?;
                        }
                        Ok(class)
                    })
                })
            }
            Expr::Delegate { inner, casei } => {
                self.class(inner, *casei, || delegated(inner, *casei))
            }
            Expr::Concat(parts) if self.is_backward => {
                parts.iter().rev().try_for_each(|part| self.expr(part))
            }
            Expr::Concat(parts) => parts.iter().try_for_each(|part| self.expr(part)),
            Expr::Alt(options) => self.alternatives(options),
            Expr::Group(inner) => {
                let number = self.groups.get(&std::ptr::from_ref(expr)).copied();
                let number = number.filter(|_| self.has_backrefs);
                let (mut open, mut close) = (0, 1);
                if self.is_backward {
                    (open, close) = (close, open);
                }
                if let Some(number) = number {
                    self.push(Op::Save(2 * number + open))?;
                }
                self.expr(inner)?;
                if let Some(number) = number {
                    self.push(Op::Save(2 * number + close))?;
                }
                Ok(())
            }
            Expr::LookAround(inner, kind) => self.look(inner, *kind),
            Expr::Repeat { child, lo, hi, greedy } => self.repeat(child, *lo, *hi, *greedy),
            Expr::Backref { group, casei } => {
                let direction = self.direction();
                let (group, ignore_case) = (*group, *casei);
                self.push(Op::Backref { group, ignore_case, direction }).map(drop)
            }
            Expr::Conditional { condition, true_branch, false_branch } => {
                let Expr::BackrefExistsCondition { group, .. } = &**condition else {
                    return Err(unsupported());
                };
                let unless = self.push(Op::UnlessSet { group: *group, to: 0 })?;
                self.expr(true_branch)?;
                let over = self.push(Op::Jump(0))?;
                let to = self.ops.len();
                self.ops[unless] = Op::UnlessSet { group: *group, to };
                self.expr(false_branch)?;
                self.ops[over] = Op::Jump(self.ops.len());
                Ok(())
            }
            _ => Err(unsupported()),
        }
    }

    fn alternatives(&mut self, options: &[Expr]) -> Result<(), Error> {
        let mut ends = Vec::new();
        for (at, option) in options.iter().enumerate() {
            if at + 1 == options.len() {
                self.expr(option)?;
                break;
            }
            let memo = self.memo();
            let split = self.push(Op::Split { first: 0, second: 0, memo })?;
            self.expr(option)?;
            ends.push(self.push(Op::Jump(0))?);
            self.ops[split] = Op::Split { first: split + 1, second: self.ops.len(), memo };
        }
        for end in ends {
            self.ops[end] = Op::Jump(self.ops.len());
        }
        Ok(())
    }

    fn look(&mut self, inner: &Expr, kind: LookAround) -> Result<(), Error> {
        let is_negative = matches!(kind, LookAround::LookAheadNeg | LookAround::LookBehindNeg);
        let looks_back = matches!(kind, LookAround::LookBehind | LookAround::LookBehindNeg);
        let memo = self.memo();
        let look = self.push(Op::Look { is_negative, then: 0, memo })?;
        let around = std::mem::replace(&mut self.is_backward, looks_back);
        self.looks += 1;
        self.expr(inner)?;
        self.looks -= 1;
        self.is_backward = around;
        self.push(Op::Accept)?;
        self.ops[look] = Op::Look { is_negative, then: self.ops.len(), memo };
        Ok(())
    }

    fn repeat(&mut self, child: &Expr, low: usize, high: usize, greedy: bool) -> Result<(), Error> {
        for _ in 0..low {
            let before = self.ops.len();
            self.expr(child)?;
            // Nothing, however often, is nothing.
            if self.ops.len() == before {
                return Ok(());
            }
        }
        // Which way is tried first decides what groups capture, and nothing else. Leaving first is cheaper.
        let greedy = greedy && self.has_backrefs;
        let split = |body: usize, end: usize, memo: usize| match greedy {
            true => Op::Split { first: body, second: end, memo },
            false => Op::Split { first: end, second: body, memo },
        };
        if high == usize::MAX {
            self.has_idle_look |= self.looks > 0 && can_be_empty(child);
            let memo = self.memo();
            let head = self.push(Op::Accept)?;
            // Only what may match nothing has to be seen to get on.
            let mark = can_be_empty(child).then_some(self.marks);
            if let Some(mark) = mark {
                self.marks += 1;
                self.push(Op::Save(mark))?;
            }
            self.expr(child)?;
            if let Some(mark) = mark {
                self.push(Op::Progress(mark))?;
            }
            self.push(Op::Jump(head))?;
            self.ops[head] = split(head + 1, self.ops.len(), memo);
            return Ok(());
        }
        let mut heads = Vec::new();
        for _ in low..high {
            let memo = self.memo();
            let head = self.push(Op::Accept)?;
            self.expr(child)?;
            if self.ops.len() == head + 1 {
                self.ops.pop();
                break;
            }
            heads.push((head, memo));
        }
        let end = self.ops.len();
        for (head, memo) in heads {
            self.ops[head] = split(head + 1, end, memo);
        }
        Ok(())
    }
}

fn can_be_empty(expr: &Expr) -> bool {
    match expr {
        Expr::Any { .. } | Expr::Delegate { .. } => false,
        Expr::Literal { val, .. } => val.is_empty(),
        Expr::Concat(parts) => parts.iter().all(can_be_empty),
        Expr::Alt(options) => options.iter().any(can_be_empty),
        Expr::Group(inner) => can_be_empty(inner),
        Expr::Repeat { child, lo, .. } => *lo == 0 || can_be_empty(child),
        _ => true,
    }
}

fn any(newline: bool, crlf: bool) -> ClassUnicode {
    let mut class = ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)]);
    if !newline {
        let ends = if crlf { &['\n', '\r'][..] } else { &['\n'] };
        class.difference(&ClassUnicode::new(
            ends.iter().map(|end| ClassUnicodeRange::new(*end, *end)),
        ));
    }
    class
}

/// The characters that a part of the pattern stands for.
fn delegated(inner: &str, ignore_case: bool) -> Result<ClassUnicode, Error> {
    let mut parser = regex_syntax::ParserBuilder::new();
    let hir: Hir = parser
        .case_insensitive(ignore_case)
        .build()
        .parse(inner)
        .map_err(|error| Error::Other(error.to_string()))?;
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => Ok(class.clone()),
        HirKind::Class(Class::Bytes(class)) => class.to_unicode_class().ok_or_else(unsupported),
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).map_err(|_| unsupported())?;
            let mut letters = text.chars();
            match (letters.next(), letters.next()) {
                (Some(only), None) => Ok(ClassUnicode::new([ClassUnicodeRange::new(only, only)])),
                _ => Err(unsupported()),
            }
        }
        _ => Err(unsupported()),
    }
}

fn unsupported() -> Error {
    Error::Other(
        "a part of the pattern is not supported beside look-around or back-references".to_owned(),
    )
}

/// What is known of an instruction that has a choice, at a position.
const UNKNOWN: u8 = 0;
/// It was tried, and is being tried still, or has failed.
const TRIED: u8 = 1;
const REACHES_END: u8 = 2;

/// A choice on the way to here.
#[derive(Clone, Copy)]
struct Frame {
    op: u32,
    at: u32,
    /// How many saved positions there were.
    undo: u32,
    is_second: bool,
}

struct Run<'a> {
    program: &'a Backtracking,
    text: &'a str,
    budget: &'a Budget,
    unpaid: u64,
    stack: Vec<Frame>,
    saved: Vec<Option<u32>>,
    /// Positions that were overwritten, to be put back.
    undo: Vec<(u32, Option<u32>)>,
    /// Two bits for each instruction with a choice at each position. Empty where nothing is remembered.
    memo: Vec<u8>,
    /// How many look-arounds are being tried.
    looks: usize,
}

impl Run<'_> {
    /// Whether the end of this part of the pattern can be reached from here.
    fn reaches_end(&mut self, op: usize, at: usize) -> Result<bool, Exhausted> {
        let bottom = self.stack.len();
        let (mut op, mut at) = (op, at);
        loop {
            self.unpaid += 1;
            if self.unpaid >= BATCH_STEPS {
                self.budget.spend(std::mem::take(&mut self.unpaid))?;
            }
            let next = match &self.program.ops[op] {
                Op::Accept => {
                    self.remember_success(bottom);
                    return Ok(true);
                }
                Op::Class { class, direction } => {
                    let class = &self.program.classes[*class];
                    let found =
                        self.neighbour(at, *direction).filter(|found| class.contains(*found));
                    found.map(|found| (op + 1, moved(at, found.len_utf8(), *direction)))
                }
                Op::Split { first, memo, .. } => {
                    let slot = self.slot(*memo, at);
                    match self.known(slot) {
                        TRIED => None,
                        REACHES_END => {
                            self.remember_success(bottom);
                            return Ok(true);
                        }
                        _ => {
                            let first = *first;
                            self.remember(slot, TRIED);
                            let undo = self.undo.len() as u32;
                            let frame =
                                Frame { op: op as u32, at: at as u32, undo, is_second: false };
                            self.stack.push(frame);
                            Some((first, at))
                        }
                    }
                }
                Op::Jump(to) => Some((*to, at)),
                // Where positions are remembered, nothing looks at what is saved.
                Op::Save(_) if !self.memo.is_empty() => Some((op + 1, at)),
                Op::Save(register) => {
                    self.undo.push((*register as u32, self.saved[*register]));
                    self.saved[*register] = Some(at as u32);
                    Some((op + 1, at))
                }
                Op::Progress(mark) => {
                    let is_stuck = self.memo.is_empty() && self.saved[*mark] == Some(at as u32);
                    (!is_stuck).then_some((op + 1, at))
                }
                Op::Backref { group, ignore_case, direction } => {
                    let after = self.backref(*group, *ignore_case, at, *direction)?;
                    after.map(|after| (op + 1, after))
                }
                Op::UnlessSet { group, to } => {
                    let is_set = self.group(*group).is_some();
                    Some((if is_set { op + 1 } else { *to }, at))
                }
                Op::Look { is_negative, then, memo } => {
                    let (is_negative, then, memo) = (*is_negative, *then, *memo);
                    let found = self.look(op + 1, at, memo)?;
                    (found != is_negative).then_some((then, at))
                }
                Op::Start => (at == 0).then_some((op + 1, at)),
                Op::End => (at == self.text.len()).then_some((op + 1, at)),
                Op::LineStart => self.is_line_start(at).then_some((op + 1, at)),
                Op::LineEnd => self.is_line_end(at).then_some((op + 1, at)),
            };
            (op, at) = match next {
                Some(next) => next,
                None => match self.back_to(bottom) {
                    Some(next) => next,
                    None => return Ok(false),
                },
            };
        }
    }

    /// The latest choice that has an alternative left.
    fn back_to(&mut self, bottom: usize) -> Option<(usize, usize)> {
        while self.stack.len() > bottom {
            let frame = self.stack.pop()?;
            if frame.is_second {
                continue;
            }
            // A look-around that succeeds has to know the whole way to its end.
            if self.looks > 0 {
                self.stack.push(Frame { is_second: true, ..frame });
            }
            self.put_back(frame.undo as usize);
            if let Op::Split { second, .. } = &self.program.ops[frame.op as usize] {
                return Some((*second, frame.at as usize));
            }
        }
        None
    }

    fn put_back(&mut self, undo: usize) {
        for (register, before) in self.undo.drain(undo..).rev() {
            self.saved[register as usize] = before;
        }
    }

    /// Every choice on the way here leads to the end.
    fn remember_success(&mut self, bottom: usize) {
        while self.stack.len() > bottom {
            let Some(Frame { op, at, .. }) = self.stack.pop() else { return };
            if let Op::Split { memo, .. } = &self.program.ops[op as usize] {
                self.remember(self.slot(*memo, at as usize), REACHES_END);
            }
        }
    }

    fn look(&mut self, op: usize, at: usize, memo: usize) -> Result<bool, Exhausted> {
        let slot = self.slot(memo, at);
        match self.known(slot) {
            TRIED => return Ok(false),
            REACHES_END => return Ok(true),
            _ => {}
        }
        let undo = self.undo.len();
        self.looks += 1;
        let found = self.reaches_end(op, at)?;
        self.looks -= 1;
        if !found {
            self.put_back(undo);
        }
        self.remember(slot, if found { REACHES_END } else { TRIED });
        Ok(found)
    }

    fn slot(&self, memo: usize, at: usize) -> usize {
        memo * (self.text.len() + 1) + at
    }

    fn known(&self, slot: usize) -> u8 {
        self.memo.get(slot / 4).map_or(UNKNOWN, |byte| byte >> (2 * (slot % 4)) & 3)
    }

    fn remember(&mut self, slot: usize, what: u8) {
        if let Some(byte) = self.memo.get_mut(slot / 4) {
            let shift = 2 * (slot % 4);
            *byte = *byte & !(3 << shift) | what << shift;
        }
    }

    fn neighbour(&self, at: usize, direction: Direction) -> Option<char> {
        match direction {
            Direction::Forward => match self.text.as_bytes().get(at) {
                Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
                _ => self.text[at..].chars().next(),
            },
            Direction::Backward => self.text[..at].chars().next_back(),
        }
    }

    fn group(&self, number: usize) -> Option<&str> {
        let bounds = (self.saved.get(2 * number)?, self.saved.get(2 * number + 1)?);
        let (Some(start), Some(end)) = bounds else { return None };
        self.text.get(*start as usize..*end as usize)
    }

    /// Where the text of a group ends that is repeated here. One that took no part is empty.
    fn backref(
        &self,
        number: usize,
        ignore_case: bool,
        at: usize,
        direction: Direction,
    ) -> Result<Option<usize>, Exhausted> {
        let Some(wanted) = self.group(number) else { return Ok(Some(at)) };
        self.budget.spend_scan(wanted.len())?;
        let mut after = at;
        let same = |wanted: char, found: char| {
            wanted == found || ignore_case && wanted.to_lowercase().eq(found.to_lowercase())
        };
        let mut step = |wanted: char| {
            let found = self.neighbour(after, direction).filter(|found| same(wanted, *found))?;
            after = moved(after, found.len_utf8(), direction);
            Some(())
        };
        let all = match direction {
            Direction::Forward => wanted.chars().try_for_each(&mut step),
            Direction::Backward => wanted.chars().rev().try_for_each(&mut step),
        };
        Ok(all.map(|()| after))
    }

    /// As the other engine has it: `\r\n` is one line end.
    fn is_line_start(&self, at: usize) -> bool {
        let bytes = self.text.as_bytes();
        let before = at.checked_sub(1).map(|before| bytes[before]);
        match before {
            None | Some(b'\n') => true,
            Some(b'\r') => bytes.get(at) != Some(&b'\n'),
            Some(_) => false,
        }
    }

    fn is_line_end(&self, at: usize) -> bool {
        let bytes = self.text.as_bytes();
        match bytes.get(at) {
            None | Some(b'\r') => true,
            Some(b'\n') => at == 0 || bytes[at - 1] != b'\r',
            Some(_) => false,
        }
    }
}

fn moved(at: usize, bytes: usize, direction: Direction) -> usize {
    match direction {
        Direction::Forward => at + bytes,
        Direction::Backward => at - bytes,
    }
}
