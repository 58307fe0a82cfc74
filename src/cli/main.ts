console.log('snug');
