/** Repositories of models on Hugging Face's hub, or on one that answers as it does, at one commit. */
import { check, OptError } from "@opt/core";
import { isCount } from "../layout/counts";
import type { FolderEntry } from "../stores/file-system";
import { httpObjects } from "../stores/http-objects";
import { asking, nameOf } from "../stores/http-request";
import { basename, dirname } from "../stores/path";
import { environment, type RemoteOptions } from "./address";
import { checkedUrl, type Remote, sent } from "./web";

const ADDRESS = /^hf:\/\/([\w.-]+\/[\w.-]+)(?:@(refs\/(?:convert|pr)\/[^/]+|[^/]+))?(?:\/(.*))?$/i;
const COMMIT = /^[0-9a-f]{40}$/;
const CURE = "Check the address. If the repository is private or gated, give the option token, or set HF_TOKEN.";

interface HubFile extends FolderEntry {
  readonly byteLength: number;
  /** The hash of its bytes. */
  readonly version: string;
}

/** @throws OptError BAD_ARGUMENT, MISSING where the hub knows no such repository or revision, IO */
export async function hubFiles(
  address: string,
  { token = environment("HF_TOKEN"), endpoint, signal }: RemoteOptions,
): Promise<Remote> {
  const [, name, revision = "main", key = ""] = ADDRESS.exec(address) ?? [];
  const rule = () => "must be hf://owner/name[@revision][/path].";
  check(
    name !== undefined && !key.split("/").includes(".."),
    "BAD_ARGUMENT",
    address,
    rule,
    "For example hf://openai-community/gpt2.",
  );
  const hub = checkedUrl("endpoint", endpoint ?? environment("HF_ENDPOINT") ?? "https://huggingface.co");
  const below = (path: string) => new URL(`${hub.pathname.replace(/\/$/, "")}/${path}`, hub);
  const how = { ...sent(token), signal, cure: CURE };
  const ask = asking(how);

  /** Undefined where there is no such thing; `next`: the address of the page that follows. */
  const answered = (url: URL) =>
    ask(url, {}, async (response) => {
      if (response.status === 404) return undefined;
      const { ok, status } = response;
      check(ok, "IO", nameOf(url), () => `the hub must answer with 200, got ${status}.`, "Look at the endpoint.");
      const next = /<([^>]*)>;\s*rel="?next/.exec(response.headers.get("link") ?? "")?.[1];
      return { said: (await response.json()) as unknown, next };
    });

  const said = COMMIT.test(revision)
    ? { sha: revision }
    : ((await answered(below(`api/models/${name}/revision/${encodeURIComponent(revision)}`)))?.said as {
        sha?: string;
      });
  const commit = said?.sha;
  const isKnown = typeof commit === "string" && COMMIT.test(commit);
  check(isKnown, "MISSING", address, () => `the hub must know the model's revision ${revision}.`, CURE);

  const listed = async (folder: string): Promise<HubFile[]> => {
    const found: HubFile[] = [];
    const path = folder.split("/").map(encodeURIComponent).join("/");
    let url: URL | undefined = below(`api/models/${name}/tree/${commit}/${path}`.replace(/\/$/, ""));
    while (url) {
      const page: Awaited<ReturnType<typeof answered>> = await answered(url);
      found.push(...filesOf(page?.said ?? [], url));
      // The token stays with the hub, whatever it says of itself.
      const next: URL | undefined = page?.next === undefined ? undefined : new URL(page.next, url);
      url = next && new URL(next.pathname + next.search, hub);
    }
    return found;
  };
  const folders = new Map<string, Promise<HubFile[]>>();
  const list = (folder: string) => {
    const known = folders.get(folder) ?? listed(folder);
    folders.set(folder, known);
    known.catch(() => folders.delete(folder));
    return known;
  };

  const { read } = httpObjects(below(`${name}/resolve/${commit}/`), how, true);
  return {
    name,
    key,
    store: {
      async stat(path) {
        const entries = await list(path.includes("/") ? dirname(path) : "");
        const file = entries.find((entry) => entry.kind === "file" && entry.name === basename(path));
        return file && { ...file, modified: 0 };
      },
      // Bytes of a commit never change; servers of files name versions in ways of their own.
      read: (path, target, position, stat) => read(path, target, position, { ...stat, version: undefined }),
      list,
    },
  };
}

function filesOf(said: unknown, url: URL): HubFile[] {
  const isEntry = (one: { type?: unknown; path?: unknown; size?: unknown } | null) =>
    typeof one?.path === "string" && (one.type !== "file" || isCount(one.size));
  const isTree = Array.isArray(said) && said.every(isEntry);
  if (!isTree) throw new OptError("IO", nameOf(url), "the hub must list files.", "Look at the endpoint.");
  return said.map(({ type, path, size, oid, lfs }) => ({
    name: basename(path),
    kind: type === "file" ? "file" : "folder",
    byteLength: size,
    version: lfs?.oid ?? oid,
  }));
}
