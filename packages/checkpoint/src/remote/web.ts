/** Files of a web server, by their addresses. */
import { check } from "@opt/core";
import { httpObjects } from "../stores/http-objects";
import type { Asking } from "../stores/http-request";
import type { ObjectStore } from "../stores/objects";
import type { RemoteOptions } from "./address";

/** Files below a name, which stands before their keys in paths. */
export interface Remote {
  readonly name: string;
  /** What the address names. */
  readonly key: string;
  readonly store: ObjectStore;
}

/** What a server gives out below its root. */
export function webFiles(address: string, { token, signal }: RemoteOptions): Remote {
  const url = checkedUrl(address, address);
  const path = decoded(url.pathname);
  check(path !== undefined, "BAD_ARGUMENT", address, () => "the path must be percent-encoded.", "Write % as %25.");
  const root = new URL("/", url);
  root.search = url.search;
  const cure = "Check the address. If the file is private, give the option token.";
  const key = path.replace(/^\/+/, "");
  return { name: url.host, key, store: httpObjects(root, { ...sent(token), signal, cure }, true) };
}

/** Tokens and models travel in the open over http: that is for this machine alone. */
export function checkedUrl(where: string, address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const isLoopback = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url?.hostname ?? "");
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback);
  const cure = "Use https. For a server without it, pass httpFileSystem(base) as fileSystem.";
  check(url !== undefined && isSafe, "BAD_ARGUMENT", where, () => `must be an https address, got ${address}.`, cure);
  return url;
}

/** An empty token counts as absent. @throws OptError BAD_ARGUMENT, without the token, for one that no header can hold */
export function sent(token = ""): Pick<Asking, "headers"> {
  const word = token.trim();
  const rule = () => "it must be one word of ASCII.";
  check(/^[!-~]*$/.test(word), "BAD_ARGUMENT", "token", rule, "Copy it again.");
  return { headers: word === "" ? {} : { authorization: `Bearer ${word}` } };
}

function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
