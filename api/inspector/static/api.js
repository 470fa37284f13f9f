// What the page asks its server for. The API key, where one is needed, stays in this tab.

const KEY = "larksong-inspector-key";

export class ServerError extends Error {
  constructor(status, detail) {
    super(detail.param ? `${detail.message}\n(${detail.param})` : detail.message);
    this.status = status;
    this.code = detail.code;
  }
}

const GONE = "The server does not answer. What is shown here was read before; is it still running?";

export function setKey(key) {
  sessionStorage.setItem(KEY, key);
}

async function send(path, options = {}) {
  const headers = { ...(options.body ? { "Content-Type": "application/json" } : {}) };
  const key = sessionStorage.getItem(KEY);
  if (key) headers.Authorization = `Bearer ${key}`;
  const answer = await fetch(`api/${path}`, { ...options, headers }).catch((error) => {
    throw error.name === "AbortError" ? error : new ServerError(0, { message: GONE });
  });
  if (answer.ok) return answer;
  if (answer.status === 401) {
    document.dispatchEvent(new Event("key-wanted")); // whatever was asked: keys may change
    if (key) throw new ServerError(401, { message: "The server does not take this API key (any more)." });
  }
  const body = await answer.json().catch(() => ({}));
  throw new ServerError(answer.status, body.error ?? { message: `The server answered ${answer.status}.` });
}

export async function get(path) {
  return (await send(path)).json();
}

export async function getText(path) {
  return (await send(path)).text();
}

export async function post(path, body, signal) {
  return (await send(path, { method: "POST", body: JSON.stringify(body), signal })).json();
}
