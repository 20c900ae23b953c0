/** What programs that tests start print is compared: never in colours, whatever the terminal of the tests asks for. */
delete process.env.FORCE_COLOR;
delete process.env.CLICOLOR_FORCE;
