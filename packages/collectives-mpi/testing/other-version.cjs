module.exports = { doorVersion: 0 };
