// Answers a question with a model, with bindings written by hand: complete MODEL.gguf QUESTION
//   rustc complete.rs -L native=WHERE/lib -l cairn
// The structs are compared with those of the loaded library before anything else is called.
use std::ffi::{c_char, c_void, CStr, CString};
use std::io::Write;
use std::ptr::{null, null_mut};

#[repr(C)]
struct Error {
    struct_size: u32,
    code: i32,
    message: [c_char; 504],
}

#[repr(C)]
struct Plan {
    struct_size: u32,
    limited_by: i32,
    target: u32,
    resume: u32,
    forward_tokens: u32,
    recurrent_steps: u32,
    copy_bytes: u64,
    new_bytes: u64,
    logits_ready: u8,
    replayed_by_cairn: u8,
    reserved: [u8; 6],
}

#[repr(C)]
struct Event {
    struct_size: u32,
    kind: i32,
    finish: i32,
    position: u32,
    token_count: u32,
    reserved: u32,
    tokens: *const i32,
    logprobs: *const f32,
    text: *const u8,
    text_bytes: usize,
    drafted: u32,
    accepted: u32,
}

extern "C" {
    fn cairn_layout_json() -> *const c_char;
    fn cairn_model_open(path: *const c_char, out: *mut *mut c_void, e: *mut Error) -> i32;
    fn cairn_model_close(model: *mut c_void);
    fn cairn_chat_render(
        model: *const c_void,
        request: *const u8,
        bytes: usize,
        out: *mut i32,
        capacity: usize,
        count: *mut usize,
        e: *mut Error,
    ) -> i32;
    fn cairn_engine_open(
        model: *mut c_void,
        params: *const c_void,
        out: *mut *mut c_void,
        e: *mut Error,
    ) -> i32;
    fn cairn_engine_close(engine: *mut c_void);
    fn cairn_conversation_open(engine: *mut c_void, out: *mut *mut c_void, e: *mut Error) -> i32;
    fn cairn_conversation_close(conversation: *mut c_void);
    fn cairn_sync(
        conversation: *mut c_void,
        tokens: *const i32,
        count: usize,
        done: *mut Plan,
        e: *mut Error,
    ) -> i32;
    fn cairn_next(conversation: *mut c_void, out: *mut Event, e: *mut Error) -> i32;
}

const DONE: i32 = 1;

impl Error {
    fn new() -> Error {
        let struct_size = std::mem::size_of::<Error>() as u32;
        Error { struct_size, code: 0, message: [0; 504] }
    }

    fn check(&self, what: &str, status: i32) -> Result<i32, String> {
        if status >= 0 {
            return Ok(status);
        }
        // The library ends every message with a zero byte.
        let message = unsafe { CStr::from_ptr(self.message.as_ptr()) };
        Err(format!("{}: {}", what, message.to_string_lossy()))
    }
}

// A handle that is closed when it goes.
struct Handle {
    handle: *mut c_void,
    close: unsafe extern "C" fn(*mut c_void),
}

impl Handle {
    fn open(
        what: &str,
        close: unsafe extern "C" fn(*mut c_void),
        open: impl FnOnce(*mut *mut c_void, *mut Error) -> i32,
    ) -> Result<Handle, String> {
        let (mut handle, mut error) = (null_mut(), Error::new());
        let status = open(&mut handle, &mut error);
        error.check(what, status)?;
        Ok(Handle { handle, close })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        unsafe { (self.close)(self.handle) }
    }
}

// {"cairn_event": {"size": 56, …}, …}
fn check_layout() -> Result<(), String> {
    let layout = unsafe { CStr::from_ptr(cairn_layout_json()) }.to_string_lossy().replace(' ', "");
    let sizes = [
        ("cairn_error", std::mem::size_of::<Error>()),
        ("cairn_plan", std::mem::size_of::<Plan>()),
        ("cairn_event", std::mem::size_of::<Event>()),
    ];
    for (name, size) in sizes {
        let expected = format!("\"{}\":{{\"size\":{},", name, size);
        if !layout.contains(&expected) {
            return Err(format!("{}: the library has another size than {}", name, size));
        }
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for each in text.chars() {
        match each {
            '"' | '\\' => out.extend(['\\', each]),
            control if control < ' ' => out += &format!("\\u{:04x}", control as u32),
            other => out.push(other),
        }
    }
    out + "\""
}

fn prompt_of(model: &Handle, question: &str) -> Result<Vec<i32>, String> {
    let request = format!("[{{\"role\": \"user\", \"content\": {}}}]", quoted(question));
    let (mut tokens, mut count, mut error) = (vec![0i32; 4096], 0usize, Error::new());
    let status = unsafe {
        cairn_chat_render(
            model.handle,
            request.as_ptr(),
            request.len(),
            tokens.as_mut_ptr(),
            tokens.len(),
            &mut count,
            &mut error,
        )
    };
    error.check("question", status)?;
    tokens.truncate(count);
    Ok(tokens)
}

fn answer(path: &str, question: &str) -> Result<(), String> {
    check_layout()?;
    let path = CString::new(path).map_err(|_| "model: a path with a zero byte".to_string())?;
    let model = Handle::open("model", cairn_model_close, |out, e| unsafe {
        cairn_model_open(path.as_ptr(), out, e)
    })?;
    let engine = Handle::open("engine", cairn_engine_close, |out, e| unsafe {
        cairn_engine_open(model.handle, null(), out, e)
    })?;
    let conversation = Handle::open("conversation", cairn_conversation_close, |out, e| unsafe {
        cairn_conversation_open(engine.handle, out, e)
    })?;

    let prompt = prompt_of(&model, question)?;
    let mut error = Error::new();
    let read = unsafe {
        cairn_sync(conversation.handle, prompt.as_ptr(), prompt.len(), null_mut(), &mut error)
    };
    error.check("prompt", read)?;
    let mut event: Event = unsafe { std::mem::zeroed() };
    event.struct_size = std::mem::size_of::<Event>() as u32;
    loop {
        let status = unsafe { cairn_next(conversation.handle, &mut event, &mut error) };
        if error.check("answer", status)? == DONE {
            break;
        }
        // The text is the library's until the next call, and whole characters.
        let text = unsafe { std::slice::from_raw_parts(event.text, event.text_bytes) };
        std::io::stdout().write_all(text).map_err(|failed| failed.to_string())?;
    }
    println!();
    Ok(())
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() != 3 {
        eprintln!("complete MODEL.gguf QUESTION");
        std::process::exit(1);
    }
    if let Err(message) = answer(&arguments[1], &arguments[2]) {
        eprintln!("{}", message);
        std::process::exit(1);
    }
}
