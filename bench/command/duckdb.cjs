// Run one statement in DuckDB, in the memory it is given.
//   node duckdb.cjs FOLDER-OF-NODE-MODULES MEMORY THREADS TEMPORARY STATEMENT
const [modules, memory, threads, temporary, statement] = process.argv.slice(2);

async function run() {
    const { DuckDBInstance } = require(modules + "/@duckdb/node-api");
    const database = await DuckDBInstance.create(":memory:", {
        memory_limit: memory,
        threads: threads,
        temp_directory: temporary,
        preserve_insertion_order: "false",
    });
    const connection = await database.connect();
    await connection.run(statement);
}

run().catch((why) => {
    console.error(String(why).split("\n")[0]);
    process.exit(3);
});
