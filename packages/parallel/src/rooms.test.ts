import { roomsTest } from "@opt/testkit/rooms";

roomsTest(new URL(".", import.meta.url), [
  ...["engine", "communicator", "local", "hosts", "prove", "local/cli.ts", "connect.ts"],
  ...["placement", "mesh", "sampler"],
  ...["data-parallel", "tensor-parallel", "fully-sharded", "sharded"],
  "sync-batch-norm",
  ...["layout-of.ts", "cost"],
]);
