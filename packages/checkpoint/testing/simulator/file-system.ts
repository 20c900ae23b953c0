/** The file system of one simulated process: every call waits for the seed, and one of them may fail. */
import type { FileSystem, OpenFile } from "../../src/stores/file-system";
import type { Disk, FileNode } from "./disk";
import type { Actor, Scheduler } from "./scheduler";

/** How a call is made: by the seed, or at once for who only looks. */
export type Call = <T>(name: string, body: () => T, partly?: () => void) => Promise<T>;

/** Calls of a process, one of which may fail. */
export function callsOf(scheduler: Scheduler, actor: Actor): Call {
  return (name, body, partly) => {
    const attempt = /\.tmp-([^/ ]+)$/.exec(name)?.[1];
    if (attempt !== undefined && /^(makeFolder|putOnce) /.test(name)) actor.attempts.add(attempt);
    const fails = name.startsWith(actor.failing) && actor.succeed-- === 0;
    const run = () => {
      if (!fails) return body();
      if (scheduler.chance(0.5)) partly?.();
      // EACCES would say that a store tells no names at all, or that a folder is somebody else's.
      const code = /^(list|syncFolder) /.test(name) ? "EIO" : actor.code;
      throw Object.assign(new Error(`${code}: ${name}`), { code });
    };
    return scheduler.call(actor, name, run, partly);
  };
}

export const atOnce: Call = async (_, body) => body();

export function diskFileSystem(disk: Disk, call: Call): FileSystem {
  const fileOf = (path: string, node: FileNode): OpenFile => ({
    read: (target, position) =>
      call(`read ${path}`, () => {
        const piece = node.data.subarray(position, position + target.length);
        target.set(piece);
        return piece.length;
      }),
    write(data, position) {
      const half = () => disk.write(path, node, data.subarray(0, data.length >> 1), position);
      return call(
        `write ${path} ${position}`,
        () => disk.write(path, node, data, position),
        () => !disk.isFull && half(),
      );
    },
    size: () => call(`size ${path}`, () => node.data.length),
    finish: () => call(`finish ${path}`, () => node.sync()),
    close: () => call(`close ${path}`, () => {}),
  });
  return {
    isNear: true,
    resolve: (path) => path,
    open: (path, mode) =>
      call(`open ${mode} ${path}`, () => fileOf(path, mode === "create" ? disk.create(path) : disk.open(path))),
    makeFolder: (path) => call(`makeFolder ${path}`, () => disk.makeFolder(path)),
    list: (path) => call(`list ${path}`, () => disk.list(path)),
    kind: (path) => call(`kind ${path}`, () => disk.kind(path)),
    modified: (path) => call(`modified ${path}`, () => 0),
    rename: (from, to) => call(`rename ${from} ${to}`, () => disk.rename(from, to)),
    remove: (path) =>
      call(
        `remove ${path}`,
        () => disk.remove(path),
        () => disk.remove(path, false),
      ),
    syncFolder: (path) => call(`syncFolder ${path}`, () => disk.syncFolder(path)),
  };
}
