// Talking to the server: JSON, streams of events, and what its errors say. The key stays in this
// module's memory: it is gone with the page.

let key = "";
export const setKey = (value) => { key = value.trim(); };
export const hasKey = () => key !== "";

// An answer of the server that is no success; `status` 0: there was none.
export class ApiError extends Error {
  constructor(message, status, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

async function ask(path, options) {
  const headers = {...(options.body ? {"Content-Type": "application/json"} : {}),
                   ...(key ? {Authorization: "Bearer " + key} : {})};
  let reply;
  try {
    reply = await fetch(path, {...options, headers, cache: "no-store", credentials: "omit"});
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new ApiError("The server does not answer.", 0);
  }
  if (reply.ok) return reply;
  const error = (await reply.json().catch(() => ({}))).error ?? {};
  throw new ApiError(error.message ?? "The server answered with status " + reply.status,
                     reply.status, error.code);
}

export async function getJson(path) {
  return (await ask(path, {})).json();
}

export async function postJson(path, body, signal) {
  return (await ask(path, {method: "POST", body: JSON.stringify(body), signal})).json();
}

// The objects of a stream's data lines, until "[DONE]" or its end. `onNote` is told its comments.
export async function* events(path, body, signal, onNote = () => {}) {
  const reply = await ask(path, body === undefined
    ? {signal} : {method: "POST", body: JSON.stringify(body), signal});
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let pending = "";
  try {
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return;
      const lines = (pending + value).split("\n");
      pending = lines.pop();
      for (const line of lines) {
        if (line.startsWith(": ")) onNote(line.slice(2));
        if (!line.startsWith("data: ")) continue;
        const data = line.slice(6);
        if (data === "[DONE]") return;
        const event = JSON.parse(data);
        if (event.error) throw new ApiError(event.error.message, reply.status, event.error.code);
        yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
