/** Addresses in the place of paths, and what a reader may say about them. */

/** For paths that are `https://...` or `hf://owner/name[@revision][/path]`; others take no notice. */
export interface RemoteOptions {
  /** Keep what was read on this machine: in a folder, or with `true` in the user's folder of caches. */
  readonly cache?: boolean | string;
  /** With `cache`: most bytes of it, about: what was opened least recently goes first. Default: 10 GiB. */
  readonly cacheLimit?: number;
  /** Sent to the server as a bearer token. Without it `hf://` takes HF_TOKEN. */
  readonly token?: string;
  /** The hub of `hf://`. Without it HF_ENDPOINT, else https://huggingface.co. */
  readonly endpoint?: string;
  /** Ends the reading; it rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** For `checkOptions`. */
export const REMOTE_OPTIONS = {
  cache: ["boolean", "string"],
  cacheLimit: "number",
  token: "string",
  endpoint: "string",
  signal: "any",
} as const;

export function isAddress(path: string): boolean {
  return /^(https?|hf):\/\//i.test(path);
}

export function environment(name: string): string | undefined {
  return globalThis.process?.env?.[name] || undefined;
}
