/** Reads package-lock.json: which of its packages one workspace needs. */

/**
 * @typedef {Record<string, string>} Versions
 * @typedef {{ link?: boolean, resolved?: string, dependencies?: Versions, devDependencies?: Versions, optionalDependencies?: Versions, peerDependencies?: Versions, peerDependenciesMeta?: Record<string, { optional?: boolean }> }} Locked
 */

/**
 * The places in node_modules of what a workspace needs, and of what these need, tools of the workspaces among them included.
 * @param {string} workspace its folder
 * @param {Record<string, Locked>} locked `packages` of the lock file
 */
export function neededBy(workspace, locked) {
  const found = new Set([workspace]);
  for (const place of found) {
    const { link, resolved, ...package_ } = locked[place] ?? {};
    if (link && resolved) {
      found.add(resolved);
      continue;
    }
    const { dependencies, devDependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = package_;
    const peers = Object.keys(peerDependencies ?? {}).filter((name) => !peerDependenciesMeta?.[name]?.optional);
    const names = [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers];
    if (!place.includes("node_modules/")) names.push(...Object.keys(devDependencies ?? {}));
    for (const name of names) {
      const from = nearest(name, place, locked);
      if (from !== undefined) found.add(from);
    }
  }
  return [...found];
}

/** Where Node finds a package from a place: in its own node_modules, or in those above. @param {string} name @param {string} place @param {Record<string, Locked>} locked */
function nearest(name, place, locked) {
  for (let folder = place; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/")))) {
    const candidate = `${folder && `${folder}/`}node_modules/${name}`;
    if (locked[candidate]) return candidate;
    if (folder === "") return undefined;
  }
}
