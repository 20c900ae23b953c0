/** A published package's manifest: its author writes what is the package's own, the rest follows. */
import { posix } from "node:path";

/** @typedef {import("./packages.mjs").Manifest} Manifest */

/** Keys in their order. Others stay at the end. */
const KEYS =
  "name version description keywords homepage bugs repository license type sideEffects main types exports imports typesVersions bin files engines os cpu libc scripts publishConfig dependencies peerDependencies peerDependenciesMeta optionalDependencies devDependencies opt".split(
    " ",
  );

/** What each package ships, beside files that its author names. */
const SOURCES = ["dist", "src", "!src/**/*.test.ts", "!src/**/*.soak.ts", "!src/**/__snapshots__"];
const PREPACK = "tools/release/prepack.mjs";
const CHANGELOG = "CHANGELOG.md";

/**
 * @param {Manifest} own
 * @param {string} directory from the root
 * @param {{ license: string, engines: object, homepage?: string, bugs?: object | string, repository?: object }} workspace the root's manifest
 * @returns {Manifest}
 */
export function completed(own, directory, { license, engines, homepage, bugs, repository }) {
  const whole = {
    ...own,
    ...(own.exports && built(own, own.exports)),
    ...{ license, engines, homepage, bugs, repository: repository && { ...repository, directory } },
    // .npmrc switches scripts off, for what is installed.
    ...{
      scripts: { prepack: `node ${posix.relative(directory, PREPACK)}` },
      publishConfig: { "ignore-scripts": false },
    },
  };
  const place = (/** @type {string} */ key) => (KEYS.includes(key) ? KEYS.indexOf(key) : KEYS.length);
  const entries = Object.entries(whole).filter(([, value]) => value !== undefined);
  return /** @type {Manifest} */ (Object.fromEntries(entries.sort(([a], [b]) => place(a) - place(b))));
}

/**
 * What follows from the entries: each has its types beside it.
 * @param {Manifest & { sideEffects?: unknown }} own
 * @param {NonNullable<Manifest["exports"]>} exports
 */
function built({ sideEffects = false, files = [], bin }, exports) {
  const entries = Object.entries(exports).flatMap(([entry, conditions]) => {
    if (typeof conditions === "string") return [];
    const { "@opt/source": source, types: _, default: file, ...others } = conditions;
    const types = String(file).replace(/\.js$/, ".d.ts");
    return [{ entry, types, file, conditions: { "@opt/source": source, types, ...others, default: file } }];
  });
  const [first, ...more] = entries;
  const parts = [...(bin ? ["bin"] : []), ...SOURCES];
  return {
    sideEffects,
    main: first?.file,
    types: first?.types,
    exports: {
      ...Object.fromEntries(entries.map(({ entry, conditions }) => [entry, conditions])),
      "./package.json": "./package.json",
    },
    // For TypeScript's old resolution, which does not read `exports`.
    typesVersions:
      more.length > 0
        ? { "*": Object.fromEntries(more.map(({ entry, types }) => [entry.slice(2), [types]])) }
        : undefined,
    files: [...parts, ...files.filter((file) => ![...parts, CHANGELOG].includes(file)), CHANGELOG],
  };
}
