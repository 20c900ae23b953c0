/** Objects that exist whole or not at all, are never renamed and never lost; large ones arrive in parts, and some uploads never end. */
import type { FileSystem } from "../../src/stores/file-system";
import { namesBelow } from "../../src/stores/memory";
import { fail, type ObjectStat, objectFileSystem, type Upload } from "../../src/stores/objects";
import { basename, dirname } from "../../src/stores/path";
import type { Call } from "./file-system";
import type { Scheduler } from "./scheduler";

/** So that a shard has several. */
const PART = 200;

interface PendingUpload {
  readonly key: string;
  readonly parts: Uint8Array[];
}

export class Bucket {
  readonly #scheduler: Scheduler;
  readonly #objects = new Map<string, { readonly data: Uint8Array; readonly stat: ObjectStat }>();
  readonly #uploads = new Set<PendingUpload>();
  /** Nothing more can be written. */
  isFull = false;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  losePower(): void {}

  /** What a process sees of it: other processes' paths may be other texts for the same key. */
  fileSystem(call: Call): FileSystem {
    const [objects, uploads] = [this.#objects, this.#uploads];
    /** Of a process that dies, or whose answer gets lost, it may be done all the same. */
    const change = <T>(name: string, body: () => T) => {
      const done = () => {
        if (this.isFull) throw fail("EDQUOT", name);
        return body();
      };
      return call(name, done, () => !this.isFull && body());
    };
    const put = (key: string, data: Uint8Array) =>
      objects.set(key, { data, stat: { byteLength: data.length, modified: Date.now() } });
    const uploadOf = (upload: PendingUpload): Upload => ({
      part: (index, data) =>
        change(`part ${upload.key} ${index}`, () => {
          upload.parts[index] = data.slice();
        }),
      finish: (count) =>
        change(`complete ${upload.key}`, () => {
          const length = upload.parts.reduce((sum, part) => sum + part.length, 0);
          const isWhole = uploads.delete(upload) && Object.keys(upload.parts).length === count;
          if (!isWhole) throw fail("EIO", `${upload.key} lacks parts`);
          const data = new Uint8Array(length);
          for (const [index, part] of upload.parts.entries()) data.set(part, index * PART);
          put(upload.key, data);
        }),
      abort: () => call(`abort ${upload.key}`, () => void uploads.delete(upload)),
    });
    const fileSystem = objectFileSystem({
      stat: (key) => call(`stat ${key}`, () => objects.get(key)?.stat),
      read: (key, target, position, stat) =>
        call(`read ${key}`, () => {
          const object = objects.get(key);
          if (object?.stat !== stat) throw fail("ESTALE", `${key} has been replaced`);
          target.set(object.data.subarray(position, position + target.length));
        }),
      list: (folder) => call(`list ${folder}`, () => this.#scheduler.shuffle(namesBelow(objects.keys(), folder))),
      writer: {
        partBytes: () => PART,
        put: (key, data) => change(`put ${key}`, () => void put(key, data.slice())),
        putOnce: (key, data) =>
          change(`putOnce ${key}`, () => {
            if (objects.has(key)) return false;
            put(key, data.slice());
            return true;
          }),
        begin: (key) =>
          change(`begin ${key}`, () => {
            const upload = { key, parts: [] };
            uploads.add(upload);
            return uploadOf(upload);
          }),
        remove: (key) =>
          call(
            `remove ${key}`,
            () => void objects.delete(key),
            () => void objects.delete(key),
          ),
        unfinished: (folder) =>
          call(`uploads ${folder}`, () =>
            [...uploads].filter(({ key }) => dirname(key) === folder).map(({ key }) => basename(key)),
          ),
        abort: (key) =>
          call(`abort ${key}`, () => {
            for (const upload of uploads) if (upload.key === key) uploads.delete(upload);
          }),
      },
    });
    return { ...fileSystem, resolve: (path) => path };
  }
}
