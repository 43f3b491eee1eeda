// The conversations of this browser, in its IndexedDB. Where there is none (private windows of some
// browsers), they last as long as the page.

const memory = new Map();
let opened = null;

function open() {
  opened ??= new Promise((resolve) => {
    let request;
    try {
      request = indexedDB.open("cairn", 1);
    } catch {
      resolve(null);
      return;
    }
    request.onupgradeneeded = () => request.result.createObjectStore("conversations", {keyPath: "id"});
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => resolve(null);
  });
  return opened;
}

async function run(mode, work) {
  const database = await open();
  if (database === null) return undefined;
  return new Promise((resolve, reject) => {
    const transaction = database.transaction("conversations", mode);
    const request = work(transaction.objectStore("conversations"));
    transaction.oncomplete = () => resolve(request.result);
    transaction.onerror = transaction.onabort = () => reject(transaction.error);
  });
}

// Newest first.
export async function all() {
  const found = await run("readonly", (store) => store.getAll()) ?? [...memory.values()];
  return found.sort((a, b) => b.updated - a.updated);
}

export async function save(conversation) {
  memory.set(conversation.id, conversation);
  await run("readwrite", (store) => store.put(conversation)).catch(() => {});
}

export async function remove(id) {
  memory.delete(id);
  await run("readwrite", (store) => store.delete(id)).catch(() => {});
}

// Small settings; false where the browser keeps none.
export function remember(name, value) {
  try {
    localStorage.setItem("cairn." + name, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

export function recall(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem("cairn." + name)) ?? otherwise;
  } catch {
    return otherwise;
  }
}
