/** Faults of the protocol, each put between the package and the simulated world: the simulator must find every one. */
import type { Communicator } from "../../src/save/ranks/communicator";
import type { FileSystem, OpenFile, UnfinishedFiles } from "../../src/stores/file-system";
import { basename } from "../../src/stores/path";
import type { PlantedFaults } from "./history";
import { RUN } from "./oracle";

const isShard = (path: string) => path.endsWith(".safetensors");
const isManifest = (path: string) => path.endsWith("/manifest.json");
const isTemporary = (path: string) => /\.tmp-[^/]+$/.test(path);
const isStep = (path: string) => /\/step-\d+$/.test(path);
const nothing = async () => {};

/** Another way to make some calls. */
const onDisk = (change: (inner: FileSystem) => Partial<FileSystem>): PlantedFaults => ({
  store: "disk",
  fileSystem: (inner) => ({ ...inner, ...change(inner) }),
});

/** Another way to write some files. */
const onFiles = (change: (file: OpenFile, path: string) => Partial<OpenFile>): PlantedFaults =>
  onDisk((inner) => ({
    async open(path, mode, byteLength) {
      const file = await inner.open(path, mode, byteLength);
      return mode === "read" ? file : { ...file, ...change(file, path) };
    },
  }));

/** Another way to make some calls to a bucket. */
const inBucket = (change: (inner: FileSystem, unfinished: UnfinishedFiles) => Partial<FileSystem>): PlantedFaults => ({
  store: "bucket",
  fileSystem: (inner) => ({ ...inner, ...change(inner, inner.unfinished!) }),
});

const noSyncOf = (isIt: (path: string) => boolean): PlantedFaults =>
  onDisk((inner) => ({ syncFolder: async (path) => (isIt(path) ? undefined : inner.syncFolder(path)) }));

/** What every save's second broadcast says when the step is there. */
const success = { value: { path: RUN, step: 0, warnings: [] } };

/** The n-th call of a communicator, and of its `aside`. */
const onMessages = (change: (inner: Communicator) => Partial<Communicator>): PlantedFaults => {
  const communicator = (inner: Communicator): Communicator => {
    let aside: Communicator | undefined;
    const own = { ...inner, ...change(inner) };
    return { ...own, aside: () => (aside ??= communicator(inner.aside!())) };
  };
  return { communicator };
};

/** By what is wrong; made anew for each history. */
export const FAULTS: Readonly<Record<string, () => PlantedFaults>> = {
  "a shard is not synced": () => onFiles((_, path) => (isShard(path) ? { finish: nothing } : {})),
  "a sync that fails is taken for done": () => onFiles((file) => ({ finish: () => file.finish().catch(() => {}) })),
  "a write that fails is taken for done": () =>
    onFiles((file) => ({ write: (data, at) => file.write(data, at).catch(() => {}) })),
  "the step's names are not synced": () => noSyncOf(isTemporary),
  "the run's names are not synced": () => noSyncOf((path) => basename(path) === basename(RUN)),
  "a replaced step's names are not synced": () => noSyncOf(isStep),
  "an overwrite removes the old manifest first": () =>
    onDisk((inner) => ({
      async rename(from, to) {
        if (isManifest(to)) await inner.remove(to);
        await inner.rename(from, to);
      },
    })),
  "an overwrite moves its manifest first": () =>
    onDisk((inner) => {
      const waiting: [string, string][] = [];
      return {
        async rename(from, to) {
          if (isShard(to)) return void waiting.push([from, to]);
          await inner.rename(from, to);
          for (const one of isManifest(to) ? waiting.splice(0) : []) await inner.rename(...one);
        },
      };
    }),
  "what is being saved is swept": () =>
    onDisk((inner) => ({
      async makeFolder(path) {
        const others = isTemporary(path) ? (await inner.list(RUN)).filter(({ name }) => isTemporary(name)) : [];
        for (const { name } of others) await inner.remove(`${RUN}/${name}`);
        await inner.makeFolder(path);
      },
    })),
  "an old step is removed under its name": () => {
    const hidden = new Map<string, string>();
    return onDisk((inner) => ({
      async rename(from, to) {
        if (isStep(from) && isTemporary(to)) hidden.set(to, from);
        else await inner.rename(from, to);
      },
      remove: (path) => inner.remove(hidden.get(path) ?? path),
    }));
  },
  "an old step goes before the new one is there": () =>
    onDisk((inner) => ({
      async makeFolder(path) {
        await inner.makeFolder(path);
        const steps = isTemporary(path) ? (await inner.list(RUN)).filter(({ name }) => isStep(`/${name}`)) : [];
        if (steps.length > 2) await inner.remove(`${RUN}/${steps.map(({ name }) => name).sort()[0]}`);
      },
    })),
  "a bucket's shard is not waited for": () => ({
    ...onFiles((file, path) => (isShard(path) ? { finish: async () => void file.finish().catch(() => {}) } : {})),
    store: "bucket",
  }),
  "a bucket's manifest replaces another's": () =>
    inBucket((inner, unfinished) => ({
      unfinished: {
        ...unfinished,
        async createOnce(path, data) {
          if (!isManifest(path)) return unfinished.createOnce(path, data);
          const file = await inner.open(path, "create");
          await file.write(data as Uint8Array, 0);
          await file.finish();
          return true;
        },
      },
    })),
  "a bucket's manifest of another save is taken for this one's": () =>
    inBucket((_, unfinished) => ({
      unfinished: {
        ...unfinished,
        createOnce: async (path, data) => (await unfinished.createOnce(path, data)) || isManifest(path),
      },
    })),
  "a save in a bucket shows no sign": () =>
    inBucket((_, unfinished) => ({
      unfinished: {
        ...unfinished,
        createOnce: async (path, data) => isTemporary(path) || unfinished.createOnce(path, data),
      },
    })),
  "a folder in a bucket goes with what another save has put there": () =>
    inBucket((inner, unfinished) => ({ unfinished: { ...unfinished, removeEmpty: inner.remove } })),
  "uploads of the dead are never ended": () =>
    inBucket((_, unfinished) => ({ unfinished: { ...unfinished, discard: nothing } })),
  "ranks are told before the commit": () =>
    onMessages((inner) => {
      let number = 0;
      return {
        broadcast: async (value) => (number++ % 2 && inner.rank > 0 ? (success as never) : inner.broadcast(value)),
      };
    }),
  "a dead rank is taken for a commit": () =>
    onMessages((inner) => ({ broadcast: (value) => inner.broadcast(value).catch(() => success as never) })),
  "the report of an earlier life is taken for this one's": () => {
    let before: unknown[] = [];
    return onMessages((inner) => {
      let number = 0;
      return {
        async gather(value) {
          const all = await inner.gather(value);
          if (!all || number++ % 2 === 0) return all;
          const late = all.map((own, rank) => (rank > 0 && before.length === all.length ? before[rank] : own));
          before = all;
          return late as typeof all;
        },
      };
    });
  },
};
