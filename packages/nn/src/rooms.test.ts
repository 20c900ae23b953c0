import { roomsTest } from "@opt/testkit/rooms";

roomsTest(new URL(".", import.meta.url), [
  ["initializers", "module", "similarity"],
  ["layers", "losses"],
  ["attention", "parametrizations", "recurrent"],
  "transformer",
]);
