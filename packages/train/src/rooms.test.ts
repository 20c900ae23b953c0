import { roomsTest } from "@opt/testkit/rooms";

roomsTest(new URL(".", import.meta.url), [
  ["check.ts", "growing-file.ts", "modes.ts", "stream.ts", "tree.ts"],
  ...["metrics", "tensor-board"],
  ...["fit", "callbacks", "fit.ts"],
  ...["chart", "look", "worker"],
]);
