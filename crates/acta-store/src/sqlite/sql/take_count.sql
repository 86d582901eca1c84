-- Apart from adding, since a new row could not begin below zero.
UPDATE acta_counters SET value = value - ?3 WHERE ns = ?1 AND counter = ?2
